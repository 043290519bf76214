/**
 * Listener and loop: reports the checkpoint of this node, in parts, to a controller whose store lacks its pods (restored from a
 * backup, or new). Until the controller has it, its desired pods are ignored, and all pods keep running.
 */
import type { ConfigMap } from '../../../api/config-map.ts'
import type { Desired } from '../../../api/desired.ts'
import type { NodeCheckpoint } from '../../../api/node/node-checkpoint.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'
import type { ProvenRecord } from '../../../api/storage/node-claim.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type ApiClient, statusMessage } from '../../../daemon/api-client.ts'
import { backoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'

/** The desired pods that this node had last. */
export type LastDesired = {
  readonly desired: Desired
  /** No pod of the controller is here that it does not list: it is not an old copy, and all of it was decoded. */
  readonly hasAllPods: boolean
}

export type CheckpointReporterNeeds = {
  readonly api: Pick<ApiClient, 'post'>
  readonly nodeName: string
  /** The last desired pods of this node, once the checkpoint is read; undefined: there is none. */
  readonly remembered: () => Promise<LastDesired | undefined>
  /** Called with the desired pods of a controller that has the checkpoint. */
  readonly desired: (message: Desired) => void
  /** Called when the controller has the checkpoint: its earlier reports of these pods are lost. */
  readonly accepted: () => void
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface CheckpointReporter extends Loop {
  desired(message: Desired): void
}

type Part = Pick<NodeCheckpoint, 'pods' | 'configMaps' | 'secrets' | 'claims'>

const retry = { firstMs: 1_000, maxMs: 60_000 }
/** The API takes 3 MiB and 16,384 fields and items, of which a pod has one for every 20 bytes or so. */
const partBytes = 128 * 1024
const idleMs = 24 * 3600_000

export function checkpointReporter(needs: CheckpointReporterNeeds): CheckpointReporter {
  const { api, nodeName, clock, random, log } = needs
  const wake = alarm(clock)
  /** The store that waits for the checkpoint. */
  let awaitedBy: string | undefined

  const post = async (
    store: string,
    part: Part & Pick<NodeCheckpoint, 'complete' | 'hasAllPods'>,
    signal: AbortSignal,
  ) => {
    const body: NodeCheckpoint = { apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store, ...part }
    const { status, body: answer } = await api.post(`/api/v1/nodes/${nodeName}/checkpoint`, body, signal)
    const because = statusMessage(answer)
    if (status !== 201) throw new Error(`The controller did not accept it: ${status} ${because ?? ''}`)
    if (because) log.warn('Pods of this node stop: the controller did not restore them', { because })
  }

  const report = async (store: string, signal: AbortSignal) => {
    const remembered = await needs.remembered()
    // A checkpoint of this very store is not reported: the node was deleted there since, and its pods with it.
    const last = remembered?.desired.store === store ? undefined : remembered
    const { pods = [], configMaps = [], secrets = [] } = last?.desired ?? {}
    const claims = last?.desired.claims?.flatMap(({ record }) => record ?? []) ?? []
    // Pods first: the controller accepts only those claims, ConfigMaps and Secrets that they name.
    for (const part of partsOf({ pods, claims, configMaps, secrets })) await post(store, part, signal)
    await post(store, { complete: true, ...(last?.hasAllPods && { hasAllPods: true }) }, signal)
    log.info('Checkpoint sent to a controller that lacked the pods of this node', {
      store,
      pods: pods.length,
      configMaps: configMaps.length,
      secrets: secrets.length,
      claims: claims.length,
    })
    if (awaitedBy === store) awaitedBy = undefined
    needs.accepted()
  }

  const logFailure = (failures: number, how: { readonly retryInMs: number; readonly error: unknown }) => {
    const what = 'Checkpoint not sent to the controller; pods keep running, trying again'
    if (failures === 1) log.warn(what, how)
    else log.debug(what, how)
  }

  return {
    name: 'checkpoint-report',
    desired(message) {
      awaitedBy = message.awaitsCheckpoint ? (message.store ?? '') : undefined
      if (awaitedBy === undefined) needs.desired(message)
      else wake.ring()
    },
    async run(signal) {
      for (let failures = 0; !signal.aborted; ) {
        const store = awaitedBy
        if (store === undefined) {
          failures = 0
          await wake.sleep(idleMs, signal)
          continue
        }
        try {
          await report(store, signal)
        } catch (error) {
          if (signal.aborted) return
          const retryInMs = Math.round(backoffMs(failures++, retry, random))
          logFailure(failures, { retryInMs, error })
          await wake.sleep(retryInMs, signal)
        }
      }
    },
  }
}

type Whole = {
  readonly pods: readonly Pod[]
  readonly configMaps: readonly ConfigMap[]
  readonly secrets: readonly Secret[]
  readonly claims: readonly ProvenRecord[]
}

function partsOf({ pods, claims, configMaps, secrets }: Whole): readonly Part[] {
  return [
    ...chunks(pods).map((some) => ({ pods: some })),
    ...chunks(claims).map((some) => ({ claims: some })),
    ...chunks(configMaps).map((some) => ({ configMaps: some })),
    ...chunks(secrets).map((some) => ({ secrets: some })),
  ]
}

function chunks<T>(items: readonly T[]): readonly (readonly T[])[] {
  const parts: T[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const item of items) {
    const size = Buffer.byteLength(JSON.stringify(item))
    bytes += size
    if (bytes > partBytes) {
      parts.push([])
      bytes = size
    }
    parts.at(-1)?.push(item)
  }
  return parts
}
