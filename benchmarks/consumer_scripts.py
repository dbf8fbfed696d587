"""What `benchmarks.consumers` runs in the interpreters of others: each loads a release with their own loader."""

PRELUDE = """
import asyncio, importlib.util, json, subprocess, sys
from importlib.metadata import version
from pathlib import Path

place = json.loads(sys.argv[1])
routes = []

def route(through, kind, load):
    try:
        routes.append({"through": through, "kind": kind, "found": load()})
    except (Exception, SystemExit) as error:
        routes.append({"through": through, "kind": kind, "error": f"{type(error).__name__}: {error}"})

def read_by_harbor(folders):
    from harbor.models.task.task import Task

    return {
        task.task_dir.name: {
            "folder": str(task.task_dir),
            "instruction": task.instruction,
            "image": task.config.environment.docker_image,
        }
        for task in map(Task, folders)
    }

def done(*packages):
    there = [f"{one} {version(one)}" for one in packages if importlib.util.find_spec(one.replace("-", "_"))]
    answer = {"program": " with ".join(there), "routes": routes}
    Path(place["answer"]).write_text(json.dumps(answer))
"""

HARBOR = """
from harbor.models.job.config import DatasetConfig

def command(*words):
    ran = subprocess.run([Path(sys.executable).with_name("harbor"), *words], capture_output=True, text=True)
    return ran.returncode, ran.stdout, ran.stderr

def local():
    return read_by_harbor(one.get_local_path() for one in asyncio.run(DatasetConfig(path=tasks).get_task_configs()))

def cloned(url, to):
    code, said, errors = command("download", place["name"], "--repo", url, "--export", "-o", to)
    if code:
        raise RuntimeError(said + errors)
    return read_by_harbor(one.parent for one in Path(to).glob("*/*/task.toml"))

def lint():
    code, said, errors = command("lint", "--json", *sorted(map(str, tasks.iterdir())))
    found = {one.name: {"lint": "clean"} for one in tasks.iterdir()}
    for one in json.loads(said or "[]"):
        found[Path(one["path"]).relative_to(tasks.resolve()).parts[0]] = {"lint": one["rule"]}
    if code and not said:
        raise RuntimeError(errors)
    return found

tasks = Path(place["tasks"])
route("`DatasetConfig(path=…)`, `Task`", "folders", local)
route("`harbor download --repo`, `Task`", "folders", lambda: cloned(place["url"], "git"))
route("the same, stored as on the Hub, no git-lfs", "folders", lambda: cloned(place["hub"], "hub"))
route("`harbor lint`", "folders", lint)
done("harbor")
"""

VERIFIERS = """
from verifiers.v1.tasksets import HarborConfig, HarborTaskset

def cloned():
    found = [task.data for task in HarborTaskset(HarborConfig(dataset=place["name"], repo=place["url"]))]
    return {
        Path(one.task_dir).name: {"folder": one.task_dir, "instruction": one.prompt, "image": one.image}
        for one in found
    }

route("`HarborTaskset(HarborConfig(repo=…))`", "folders", cloned)
done("verifiers", "harbor")
"""

INSPECT = """
from inspect_harbor import harbor

def read(**where):
    return {
        Path(one.metadata["task_dir"]).name: {
            "folder": one.metadata["task_dir"],
            "instruction": one.input,
            "image": one.sandbox.config.services["default"].image,
        }
        for one in harbor(**where).dataset
    }

named = {"registry_path": place["registry"], "dataset_name_version": f"{place['name']}@{place['version']}"}
route("`harbor(path=…)`", "folders", lambda: read(path=place["tasks"]))
route("`harbor(registry_path=…)`", "folders", lambda: read(**named))
done("inspect-harbor", "inspect-ai")
"""

NEMO = """
AGENTS = "responses_api_agents"
tasks = Path(place["tasks"])
common = {"name": "harbor", "host": "127.0.0.1", "port": 1, "entrypoint": "app.py"}

def prepared():
    from responses_api_agents.anyterminal_agent.prepare import build_dataset

    build_dataset(Path("rows.jsonl"), tasks.parent, tasks.name, None, None)
    rows = [json.loads(line)["responses_create_params"] for line in Path("rows.jsonl").read_text().splitlines()]
    return {
        row["metadata"]["task_name"]: {
            "folder": row["metadata"]["task_dir"],
            "instruction": row["input"][0]["content"],
            "image": row["metadata"]["docker_image"],
        }
        for row in rows
    }

def general():
    from responses_api_agents.harbor_agent_general.app import HarborAgentConfig

    config = HarborAgentConfig(**common, harbor_jobs_dir="jobs", harbor_dataset={"path": tasks})
    jobs = [config.build_job_config(one.name, "job") for one in tasks.iterdir()]
    sources = [source for job in jobs for source in job.datasets]
    return read_by_harbor(one.get_local_path() for source in sources for one in asyncio.run(source.get_task_configs()))

def older():
    from harbor.models.job.config import JobConfig
    from responses_api_agents.harbor_agent.app import HarborAgent, HarborAgentConfig

    config = HarborAgentConfig(
        **common,
        concurrency=1,
        model_server={"type": "responses_api_models", "name": "policy_model"},
        harbor_agent_name=None,
        harbor_environment_type=None,
        harbor_environment_import_path=f"{AGENTS}.harbor_agent.custom_envs.singularity.singularity:SingularityEnvironment",
        harbor_datasets={"release": {"local_dataset_path": str(tasks), "workdir": "/testbed"}},
    )
    agent = HarborAgent.model_construct(config=config)
    made = [agent._build_job_config("release", one.name, "", "", "job", Path("jobs")) for one in tasks.iterdir()]
    sources = [source for job in made for source in JobConfig(**job).datasets]
    return read_by_harbor(one.path for source in sources for one in source.get_task_configs())

route("`anyterminal_agent.prepare.build_dataset`", "folders", prepared)
if importlib.util.find_spec(f"{AGENTS}.harbor_agent_general"):
    route("`harbor_agent_general`: `build_job_config`", "folders", general)
else:
    route("`harbor_agent`: the job of each task", "folders", older)
done("nemo-gym", "harbor")
"""

DATASETS = """
import datasets

def configurations():
    names = datasets.get_dataset_config_names(place["release"])
    return {
        one: {"rows": str(datasets.load_dataset(place["release"], one, split="test").num_rows)} for one in names
    }

def folders():
    return {
        Path(row["location"]).name: {
            "instruction": row["instruction"],
            "image": row["config"]["environment"]["docker_image"],
        }
        for rows in datasets.load_dataset("harbor", data_dir=place["tasks"]).values()
        for row in rows
    }

route("`load_dataset(RELEASE, CONFIGURATION)`", "configurations", configurations)
route('`load_dataset("harbor", data_dir=…)`', "folders", folders)
done("datasets")
"""

GSO = """
sys.path.insert(0, place["clone"] + "/src")
from gso.utils.io import load_gso_dataset

def read(name):
    found = load_gso_dataset(f"{place['release']}/{name}")
    return {one.instance_id: {"script": one.prob_script, "base": one.base_commit} for one in found}

for name in ("data/gso", "jsonl/gso.jsonl"):
    route(f'`load_gso_dataset("{name}")`', "gso", lambda: read(name))
done()
"""

SWEPERF = """
sys.path.insert(0, place["clone"] + "/evaluation")
from utils import load_sweperf_dataset

def read():
    found = load_sweperf_dataset(f"{place['release']}/jsonl/sweperf.jsonl")
    return {
        one["instance_id"]: {"problem": one["problem_statement_oracle"], "base": one["base_commit"]}
        for one in found
    }

route('`load_sweperf_dataset("jsonl/sweperf.jsonl")`', "sweperf", read)
done()
"""
