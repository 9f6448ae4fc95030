/** A worker that polls task queue ace-typescript: npm run build && npm run worker. acescope polls ace. */
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NativeConnection, Worker } from '@temporalio/worker';
import * as all from './activities';

async function main(): Promise<void> {
  const { observer, ...activities } = all;
  const { connectionOptions, namespace } = loadClientConnectConfig();
  const connection = await NativeConnection.connect(connectionOptions);
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue: 'ace-typescript',
    workflowsPath: require.resolve('./workflows'),
    activities,
  });
  await worker.run(); // until SIGINT or SIGTERM
  await observer.close();
  await connection.close();
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
