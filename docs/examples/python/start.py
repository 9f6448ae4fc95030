"""Run tasks on the worker: python start.py EXPERIMENT PROMPT [LABEL]. Without a label, nothing is learned."""

import asyncio
import sys
import time

from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.envconfig import ClientConfig

from worker import TASK_QUEUE


async def main(experiment: str, prompt: str, *label: str) -> None:
    client = await Client.connect(**ClientConfig.load_client_connect_config())
    task_id = f"{experiment}-{time.time_ns() // 1_000_000}"
    task = {
        "task_id": task_id,
        "prompt": prompt,
        "adapter": "online",
        "playbook_hash": "",
        "skills_config": {},
        "experiment_id": experiment,
        "dataset_id": "by-hand",
        "provider": "python",
        "model": "lookup",
        "branch": experiment,
    }
    if label:
        task["label"] = label[0]
    keywords = {
        "ExperimentId": experiment,
        "DatasetId": "by-hand",
        "ModelName": "lookup",
        "AdapterType": "online",
        "ExitStatus": "running",
        "TaskId": task_id,
        "Phase": "generator",
    }
    attributes = [SearchAttributePair(SearchAttributeKey.for_keyword(k), v) for k, v in keywords.items()]
    result = await client.execute_workflow(
        "AceTaskWorkflow",
        task,
        id=f"ace/{task_id}",
        task_queue=TASK_QUEUE,
        search_attributes=TypedSearchAttributes(attributes),
    )
    print(f"{task_id}: {result['verdict']}, {result['answer']}, bullets: {result['bullets']}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
