/** Loop: the CSI drivers of this node → its CSINode and the labels of its Node, whenever they change. Without a driver nothing is written. */
import type { Node } from '../../../../api/node.ts'
import type { CSINode } from '../../../../api/storage/csi-node.ts'
import { alarm } from '../../../../daemon/alarm.ts'
import { type ApiAnswer, type ApiClient, statusMessage } from '../../../../daemon/api-client.ts'
import { longestBackoffMs } from '../../../../daemon/backoff.ts'
import type { Reader } from '../../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../../daemon/log.ts'
import type { Loop } from '../../../../daemon/run.ts'
import { csiNodeDrivers, csiNodePatch, csiNodeWrites, type NodeDriver, topologyCollisions } from './node-drivers.ts'

export type CsiNodeReportNeeds = {
  readonly reads: { readonly csiDrivers: Reader<readonly NodeDriver[] | undefined> }
  readonly api: Pick<ApiClient, 'get' | 'post' | 'patch'>
  readonly clock: Clock
  readonly log: Log
}

const retry = { firstMs: 2_000, maxMs: 5 * 60_000 }
const merge = 'application/merge-patch+json'
const csiNodes = '/apis/storage.k8s.io/v1/csinodes'

export function csiNodeReport({ reads, api, clock, log }: CsiNodeReportNeeds, nodeName: string): Loop {
  const wake = alarm(clock)
  let reported: readonly NodeDriver[] | undefined
  let attempts = 0
  let failure: string | undefined

  const report = async (drivers: readonly NodeDriver[], signal: AbortSignal) => {
    const nodePath = `/api/v1/nodes/${nodeName}`
    const node = checked(await api.get(nodePath, signal), 200).body as Node
    for (const collision of topologyCollisions(node.metadata, drivers))
      log.warn('Topology of a CSI driver', { collision })
    const patch = csiNodePatch(node.metadata, drivers)
    if (patch !== undefined) checked(await api.patch(nodePath, patch, merge, signal), 200)
    const path = `${csiNodes}/${nodeName}`
    const found = await api.get(path, signal)
    const wanted = csiNodeDrivers(drivers)
    if (found.status === 404) {
      const owner = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: node.metadata.uid }
      const metadata = { name: nodeName, ownerReferences: [owner] }
      const made = { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata, spec: { drivers: wanted } }
      checked(await api.post(csiNodes, made, signal), 201)
    } else {
      for (const list of csiNodeWrites(checked(found, 200).body as CSINode, wanted)) {
        checked(await api.patch(path, { spec: { drivers: list } }, merge, signal), 200)
      }
    }
    log.info('CSI drivers reported', { drivers: drivers.map(({ name }) => name) })
  }

  /** Gives the time until the next pass. */
  const pass = async (signal: AbortSignal): Promise<number> => {
    const drivers = reads.csiDrivers.get()
    // A driver that went while no agent ran is taken off with the next change: most machines never have one, and ask nothing.
    const isNone = drivers === undefined || (drivers.length === 0 && reported === undefined)
    if (isNone || drivers === reported) return longestTimerMs
    try {
      await report(drivers, signal)
      ;[reported, attempts, failure] = [drivers, 0, undefined]
      return reads.csiDrivers.get() === drivers ? longestTimerMs : 0
    } catch (error) {
      const because = storyOf(error)
      if (!signal.aborted && because !== failure) log.warn('Cannot report the CSI drivers of this node', { error })
      failure = because
      return longestBackoffMs(attempts++, retry)
    }
  }

  return {
    name: 'csi-node',
    async run(signal) {
      const stop = reads.csiDrivers.onChange(wake.ring)
      try {
        while (!signal.aborted) await wake.sleep(await pass(signal), signal)
      } finally {
        stop()
      }
    },
  }
}

function checked(answer: ApiAnswer, status: number): ApiAnswer {
  if (answer.status === status) return answer
  throw new Error(`${answer.status} ${statusMessage(answer.body) ?? ''}`.trim())
}
