/** A connection to etcd for a program that starts: it waits for etcd, and an error names what to check. */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { type EtcdClient, openEtcdClient } from './etcd-client.ts'
import type { EtcdClientNeeds } from './etcd-endpoints.ts'
import { EtcdError, isAbsent } from './etcd-error.ts'
import { methods } from './etcd-messages.ts'
import type { EtcdPlace } from './etcd-place.ts'

/** How long a start waits for etcd, which may be starting, too. */
const startMs = 15_000
const pauseMs = 250

type StartNeeds = Pick<EtcdClientNeeds, 'deadlineMs'> & {
  readonly clock: Clock
  readonly log: Log
  readonly signal?: AbortSignal | undefined
}

/** Resolves when a member answers that has a leader. Rejects with an error that has a remedy, and when `signal` aborts. */
export async function connectEtcd(
  { servers, tls }: EtcdPlace,
  { clock, log, signal, deadlineMs }: StartNeeds,
): Promise<EtcdClient> {
  const client = await openEtcdClient({ servers, tls, clock, log, deadlineMs })
  const untilMs = clock.monotonicMs() + startMs
  for (let isFirst = true; ; isFirst = false) {
    try {
      await client.call(methods.range, { key: Buffer.from('/'), countOnly: true })
      return client
    } catch (error) {
      if (signal?.aborted) {
        client.close()
        throw error
      }
      if (!isAbsent(error) || clock.monotonicMs() > untilMs) {
        const explanation = await explained(client, error)
        client.close()
        throw explanation
      }
      if (isFirst) log.info('Waiting for etcd', { servers: servers.join(','), error })
      await clock.sleep(pauseMs, signal)
    }
  }
}

async function explained(client: EtcdClient, error: unknown): Promise<unknown> {
  if (!(error instanceof EtcdError)) return error
  const { message } = error
  const reasons = isAbsent(error) ? await client.reasons() : [message]
  const remedy = 'Check that etcd runs, and --etcd-servers, --etcd-cafile, --etcd-certfile and --etcd-keyfile'
  return new Error(`${reasons.join('; ')}. ${remedy}`, { cause: error })
}
