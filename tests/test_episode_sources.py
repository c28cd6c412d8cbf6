"""What episodes are seen of logs and data sets, and what becomes of their scores."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from openai_server import OpenAIServer
from robometer_server import RobometerServer
from test_robot_logs import GOAL, recorded

import sims
from real_robot import read_log
from robo_rl.cli import main
from robo_rl.datasets.robot_logs import decode_frame, episodes, select_logs
from robo_rl.datasets.sources import SourceOptions, read_episodes, source_kind
from sims import BatchEnv
from sims.envs.demonstrations import DemoConfig, write_demos

SENTENCE = "the gripper touches the red cube"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three episodes by hand, with pictures that grow lighter."""
    folder = tmp_path_factory.mktemp("sources") / "logs"
    folder.mkdir()
    task = sims.make_task("reach", robot="so101", goal=GOAL)
    for i, verdict in enumerate(("success", "failure", "success")):
        film = ("front", "wrist")
        recorded(folder / f"{i}.mcap", task, film=film, verdict=verdict, turn=0.2 + 0.1 * i)
    return folder


@pytest.fixture(scope="module")
def lerobot(logs: Path) -> Path:
    """A LeRobotDataset of those."""
    pytest.importorskip("pyarrow")
    to = logs.with_name("lerobot")
    command = ["demos", str(to), "--format", "lerobot", "--failures", "--from", str(logs)]
    assert main(command) == 0
    return to


@pytest.fixture(scope="module")
def minari(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four of the expert's episodes, in some of which it loses its head."""
    to = tmp_path_factory.mktemp("sources") / "set"
    task = sims.make_task("reach", robot="so101", goal=GOAL)
    write_demos(task, to, DemoConfig(episodes=4, num_envs=4, seed=3, failures=0.5))
    return to


def seen(path: Path, **watch) -> list:
    return list(read_episodes([path], SourceOptions(**watch)))


def light(frames: np.ndarray) -> np.ndarray:
    return frames.mean(axis=(1, 2, 3))


def refusal(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    """The one line that `reward score` says."""
    assert main(["reward", "score", *map(str, args)]) == 1
    error = capsys.readouterr().err
    assert error.count("robo-rl: ") == 1 and error.endswith("\n"), error
    return " ".join(error.split("robo-rl: ")[1].split())


def test_log_source_has_frames_while_driven(logs: Path) -> None:
    assert source_kind(logs) == source_kind(logs / "0.mcap") == "log"
    found = seen(logs, camera="front")
    assert [one.name for one in found] == [str(logs / f"{i}.mcap") for i in range(3)]
    assert [one.met for one in found] == [True, False, True]
    for one in found:
        assert one.judge == "operator" and one.text == SENTENCE and one.task.robot == "so101"
        log = read_log(one.name, frames=True)
        hands = [tick["t"] for tick in log.ticks if tick["phase"] == "human"]
        taken = [p for t, p in log.frames["front"] if hands[0] <= t <= hands[-1]]
        assert 5 < len(taken) < len(log.frames["front"])
        np.testing.assert_array_equal(one.frames, [decode_frame(picture) for picture in taken])
        assert one.frames.shape[1:] == (48, 64, 3) and (np.diff(light(one.frames)) > 0).all()
    (wrist,) = seen(logs, camera="wrist", episodes=1, frames=3)
    assert wrist.at.tolist() == [0, (len(found[0].at) - 1) // 2, found[0].at[-1]]
    assert (light(wrist.frames) < light(found[0].frames[wrist.at])).all()
    # What the person said is of what the person was asked for.
    other = seen(logs, camera="front", goal="the gripper is left of the red cube")
    assert {one.met for one in other} == {None} and other[0].text.endswith("left of the red cube")


def test_log_without_a_controller_is_skipped(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = sims.make_task("reach", robot="so101", goal=GOAL)
    idle = recorded(tmp_path / "idle.mcap", task, film=("front",), seconds=0.12)
    says = "idle.mcap holds no picture that was taken while somebody drove"
    with RobometerServer() as server:
        ask = ["--scorer", f"robometer:{server.url}", "--model.cache", tmp_path / "cache"]
        assert says in refusal(capsys, idle, *ask)
        assert main(["reward", "score", str(tmp_path), *map(str, ask)]) == 1
        error = capsys.readouterr().err
        assert "left out" in error and "no frames in" in error
        (tmp_path / "0.mcap").write_bytes((logs / "0.mcap").read_bytes())
        ask += ["--camera", "front", "--json"]
        assert main(["reward", "score", str(tmp_path), *map(str, ask)]) == 0
        told = capsys.readouterr()
        assert json.loads(told.out)["source"].endswith("0.mcap") and says in told.err


def test_minari_source_renders_the_replayed_states(minari: Path) -> None:
    assert source_kind(minari) == "minari"
    found = seen(minari)
    env, frames, distance = BatchEnv(found[0].task, 4, seed=3), [], []
    import h5py

    with h5py.File(minari / "data" / "main_data.hdf5") as file:
        groups = [file[f"episode_{i}"] for i in range(4)]
        actions = np.stack([np.array(group["actions"]) for group in groups])
        success = [bool(group.attrs["success"]) for group in groups]
    env.reset()
    for t in range(env.max_steps + 1):
        frames.append(env.render())
        distance.append(env.distance())
        if t < env.max_steps:
            env.step(actions[:, t])
    assert [one.met for one in found] == success and len(set(success)) == 2
    for row, one in enumerate(found):
        np.testing.assert_array_equal(one.frames, np.stack(frames)[:, row])
        np.testing.assert_allclose(one.distance, np.stack(distance)[:, row], atol=1e-6)
        assert one.name == f"set, episode {row}" and one.judge == "simulator"
        assert one.text == SENTENCE
    drawn = seen(minari, episodes=2, frames=5, height=64, goal="the gripper is above the blue ball")
    assert len(drawn) == 2 and drawn[0].frames.shape == (5, 64, 64, 3)
    assert drawn[0].met is drawn[0].distance is None
    env.close()


def test_lerobot_source_cuts_episodes_from_videos(lerobot: Path, logs: Path) -> None:
    assert source_kind(lerobot) == "lerobot"
    paths = sorted(logs.glob("*.mcap"))
    found, written = seen(lerobot, camera="wrist"), episodes(paths, select_logs(paths), frames=True)
    for number, (one, log) in enumerate(zip(found, written, strict=True)):
        assert one.name == f"lerobot, episode {number}" and one.text == SENTENCE
        assert one.met is None and one.frames.shape == (len(log.action), 48, 64, 3)
        taken = np.array([t for t, _ in log.frames["wrist"]])
        newest = [log.frames["wrist"][np.flatnonzero(taken <= t)[-1]][1] for t in log.t[:-1]]
        expected = light(np.stack([decode_frame(picture) for picture in newest]))
        np.testing.assert_allclose(light(one.frames), expected, atol=2.0)
    few = seen(lerobot, camera="wrist", frames=3, episodes=2)
    assert [one.at.tolist() for one in few] == [[0, 4, 8]] * 2
    for one, all_ in zip(few, found, strict=False):
        np.testing.assert_array_equal(one.frames, all_.frames[one.at])


def test_lerobot_episode_may_start_between_key_frames(lerobot: Path, tmp_path: Path) -> None:
    """As others write them: few whole frames, and more than one file."""
    av = pytest.importorskip("av")
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    info = json.loads((lerobot / "meta" / "info.json").read_text())
    other = tmp_path / "other"
    (other / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
    rows = pq.read_table(lerobot / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    key = "videos/observation.images.front"
    for row, begins in zip(rows, (0.0, 0.45, 0.0), strict=True):
        row |= {f"{key}/file_index": int(row["episode_index"] == 2)}
        row |= {f"{key}/from_timestamp": begins, "tasks": [f"touch the {row['episode_index']}"]}
    for i, part in enumerate((rows[2:], rows[:2])):
        where = other / "meta" / "episodes" / "chunk-000" / f"file-{i:03d}.parquet"
        pq.write_table(pa.Table.from_pylist(part), where)
    (other / "meta" / "info.json").write_text(json.dumps(info | {"fps": 20}))
    shades = np.linspace(10, 240, 18).round(), np.linspace(240, 10, 9).round()
    for i, those in enumerate(shades):
        path = other / info["video_path"].format(
            video_key="observation.images.front", chunk_index=0, file_index=i
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(path, "w") as film:
            stream = film.add_stream("libx264", rate=20, options={"g": "250", "bf": "3"})
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            for shade in those:
                image = np.full((48, 64, 3), shade, np.uint8)
                film.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
            film.mux(stream.encode())
    found = seen(other, camera="front")
    assert [one.text for one in found] == [f"touch the {i}" for i in range(3)]
    for one, those in zip(found, (shades[0][:9], shades[0][9:], shades[1]), strict=True):
        np.testing.assert_allclose(light(one.frames), those, atol=3.0)


def test_reward_score_writes_lerobot_progress(
    lerobot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    to = tmp_path / "sarm_progress.parquet"
    ask = ["reward", "score", str(lerobot), "--camera", "front", "--progress", str(to), "--json"]
    expected = np.concatenate([light(one.frames) / 255 for one in seen(lerobot, camera="front")])
    with RobometerServer() as server:
        ask += ["--scorer", f"robometer:{server.url}", "--model.cache", str(tmp_path / "cache")]
        assert main([*ask, "--frames", "9"]) == 0
        assert f"{to}: 0 up to a score of 0.000, 1 from 1.000 on" in capsys.readouterr().err
        table = pq.read_table(to)
        assert table.column_names == ["index", "episode_index", "frame_index", "progress_sparse"]
        assert table["index"].to_pylist() == [*range(27)]
        assert table["episode_index"].to_pylist() == [0] * 9 + [1] * 9 + [2] * 9
        assert table["frame_index"].to_pylist() == [*range(9)] * 3
        np.testing.assert_allclose(table["progress_sparse"].to_numpy(), expected, atol=2e-3)
        # Of three frames of each: straight lines between them, cut off beyond the bounds.
        to.unlink()
        low, high = float(expected[2]), float(expected[6])
        assert main([*ask, "--frames", "3", "--bounds", str(low), str(high)]) == 0
        progress = pq.read_table(to)["progress_sparse"].to_numpy()[:9]
        assert progress[0] == 0.0 and progress[8] == 1.0
        knots = ((expected[[0, 4, 8]] - low) / (high - low)).clip(0, 1)
        np.testing.assert_allclose(progress, np.interp(np.arange(9), [0, 4, 8], knots), atol=5e-3)
        count, _ = len(server.asked), capsys.readouterr()
        assert "must be a new .parquet file" in refusal(capsys, *ask[2:])
        assert len(server.asked) == count


def test_unanswered_frames_have_no_progress(
    lerobot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("openai")
    pq = pytest.importorskip("pyarrow.parquet")
    to, plot = tmp_path / "progress.parquet", tmp_path / "scores.png"
    with OpenAIServer(["no idea"]) as server:
        ask = ["reward", "score", str(lerobot), "--camera", "front", "--scorer", "vlm:test"]
        ask += ["--model.base-url", server.url, "--model.key-variable", ""]
        ask += ["--model.cache", str(tmp_path / "cache"), "--model.again", "0"]
        assert main([*ask, "--progress", str(to)]) == 0
        assert capsys.readouterr().out.count("said: no answer") == 3
        progress = pq.read_table(to)["progress_sparse"].to_numpy()
        assert len(progress) == 27 and np.isnan(progress).all()
        assert "no frame has a score" in refusal(capsys, *ask[2:], "--plot", plot)
        assert not plot.exists()


def test_score_plot_shows_lowest_and_highest_frames(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shades, folder = ((90, 0, 0), (0, 10, 200), (0, 250, 120), (120, 0, 130)), tmp_path / "images"
    folder.mkdir()
    for i, shade in enumerate(shades):
        cv2.imwrite(str(folder / f"{i}.png"), np.full((24, 32, 3), shade[::-1], np.uint8))
    to = tmp_path / "plots" / "scores.png"
    ask = ["reward", "score", "--goal", SENTENCE, "--plot", str(to)]
    with RobometerServer() as server:
        ask += ["--scorer", f"robometer:{server.url}", "--model.cache", str(tmp_path / "cache")]
        assert main([*ask, str(folder)]) == 0
        one = cv2.imread(str(to))[..., ::-1]
        shown = [(one == shade).all(axis=2).sum() for shade in shades]
        assert min(shown[0], shown[2]) > 5_000 and max(shown[1], shown[3]) == 0
        assert main([*ask, str(folder), str(logs), "--camera", "front", "--episodes", "2"]) == 0
        three = cv2.imread(str(to))
        assert three.shape[0] > 2.5 * one.shape[0] and three.shape[1] == one.shape[1]
        out = capsys.readouterr().out
        assert "success: True; judged_by: operator" in out and "success: False" in out


def test_reward_score_of_a_minari_dataset(
    minari: Path, lerobot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    assert main(["reward", "score", str(minari), "--json"]) == 0
    for figures in json.loads(capsys.readouterr().out)["episodes"]:
        assert figures["spearman_with_nearness"] > 0.7 and len(figures["score"]) == 51
    to = tmp_path / "progress.parquet"
    ask = ["reward", "score", str(lerobot), "--camera", "wrist", "--progress", str(to)]
    assert main([*ask, "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)["episodes"]
    scores = np.concatenate([figures["score"] for figures in scored])
    low, high = np.quantile(scores, (0.05, 0.995))
    progress = pq.read_table(to)["progress_sparse"].to_numpy()
    np.testing.assert_allclose(progress, ((scores - low) / (high - low)).clip(0, 1), atol=1e-4)
    assert progress.min() == 0.0 and progress.max() == 1.0


def test_reward_score_errors_are_one_line(
    logs: Path,
    lerobot: Path,
    minari: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = sims.make_task("reach", robot="so101", goal=GOAL)
    plain = recorded(tmp_path / "plain.mcap", task, seconds=0.4)
    assert "plain.mcap has no camera frames" in refusal(capsys, plain)
    assert "0.mcap has 2 cameras; give --camera front or wrist" in refusal(capsys, logs)
    said = refusal(capsys, logs, "--camera", "top")
    assert "0.mcap has no camera 'top'; give --camera front or wrist" in said
    (tmp_path / "empty").mkdir()
    said = refusal(capsys, tmp_path / "empty")
    assert "has no frames that can be read; expected one of: a finished run; an arm's log" in said
    assert "--episodes 1, got 8 and 0" in refusal(capsys, minari, "--episodes", "0")
    assert "unknown camera 'behind'" in refusal(capsys, minari, "--camera", "behind")
    said = refusal(capsys, minari, "--progress", tmp_path / "p.parquet")
    assert "of one LeRobotDataset" in said and "got a Minari data set" in said
    said = refusal(capsys, lerobot, "--progress", tmp_path / "p.json")
    assert "must be a new .parquet file" in said
    assert "needs --progress" in refusal(capsys, lerobot, "--bounds", "0", "1")
    said = refusal(capsys, lerobot, "--bounds", "1", "0", "--progress", tmp_path / "p.parquet")
    assert "two increasing numbers, got (1.0, 0.0)" in said
    assert "--plot must be a .png file" in refusal(capsys, lerobot, "--plot", tmp_path / "p.jpg")
    arms = tmp_path / "arms"
    assert main(["demos", str(arms), "--from", str(logs)]) == 0
    capsys.readouterr()
    assert "score the logs that it was made of" in refusal(capsys, arms)
    check_lerobots(lerobot, tmp_path, capsys, monkeypatch)


def check_lerobots(
    lerobot: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import shutil

    other = tmp_path / "other"
    shutil.copytree(lerobot, other)
    info = json.loads((other / "meta" / "info.json").read_text())
    film = next((other / "videos").glob("*front*/*/*.mp4"))
    for changes, says in (
        ({"codebase_version": "v2.1"}, "must be a LeRobotDataset v3.x, got v2.1"),
        ({"fps": 40}, "front/chunk-000/file-000.mp4 has no frame at 0.0"),
        ({"features": {"a": {"dtype": "image"}}}, "stores images in data/*.parquet"),
    ):
        (other / "meta" / "info.json").write_text(json.dumps(info | changes))
        assert says in refusal(capsys, other, "--camera", "front"), says
    (other / "meta" / "info.json").write_text(json.dumps(info))
    film.write_bytes(film.read_bytes()[:1000])
    assert "Invalid data" in refusal(capsys, other, "--camera", "front")
    film.unlink()
    assert "file-000.mp4" in refusal(capsys, other, "--camera", "front")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    said = refusal(capsys, other)
    assert "to read it needs pyarrow: pip install 'robo-rl[lerobot]'" in said


def test_dataset_of_a_changed_task_is_refused(minari: Path, tmp_path: Path) -> None:
    import shutil

    import h5py

    other = tmp_path / "set"
    shutil.copytree(minari, other)
    with h5py.File(other / "data" / "main_data.hdf5", "r+") as file:
        file["episode_1"].attrs["start"] = file["episode_0"].attrs["start"]
    frames = read_episodes([other], SourceOptions())
    assert next(frames).name == "set, episode 0"
    with pytest.raises(ValueError, match="replayed episodes differ from the stored ones"):
        next(frames)
