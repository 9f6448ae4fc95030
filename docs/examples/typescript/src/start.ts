/** Runs a task on the worker: npm start -- EXPERIMENT PROMPT [LABEL]. Without a label, nothing is learned. */
import { Client, Connection } from '@temporalio/client';
import { SearchAttributeType, TypedSearchAttributes } from '@temporalio/common';
import { loadClientConnectConfig } from '@temporalio/envconfig';

async function main([experiment, prompt, label]: string[]): Promise<void> {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  const connection = await Connection.connect(connectionOptions);
  const client = new Client({ connection, namespace });
  const taskId = `${experiment}-${Date.now()}`;
  const attributes = {
    ExperimentId: experiment,
    DatasetId: 'by-hand',
    ModelName: 'lookup',
    AdapterType: 'online',
    ExitStatus: 'running',
    TaskId: taskId,
    Phase: 'generator',
  };
  const task = {
    task_id: taskId,
    prompt,
    adapter: 'online',
    playbook_hash: '',
    skills_config: {},
    experiment_id: experiment,
    dataset_id: 'by-hand',
    provider: 'typescript',
    model: 'lookup',
    branch: experiment,
    label,
  };
  const result = await client.workflow.execute('AceTaskWorkflow', {
    args: [task],
    workflowId: `ace/${taskId}`,
    taskQueue: 'ace-typescript',
    typedSearchAttributes: new TypedSearchAttributes(
      Object.entries(attributes).map(([name, value]) => ({
        key: { name, type: SearchAttributeType.KEYWORD },
        value,
      })),
    ),
  });
  console.log(`${taskId}: ${result.verdict}, ${result.answer}, bullets: ${result.bullets}`);
  await connection.close();
}

main(process.argv.slice(2)).catch((e) => {
  console.error(e);
  process.exit(1);
});
