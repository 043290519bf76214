import { test } from 'tap'
import { cell } from '../../../../daemon/cell.ts'
import { fakeClock } from '../../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { until } from '../../../testing/until.ts'
import { csiNodeReport } from './csi-node-report.ts'
import type { NodeDriver } from './node-drivers.ts'

const driver: NodeDriver = { name: 'a.example.com', nodeID: 'id', topology: {} }

test('the drivers of a node are written to its CSINode, again after a failure, and never while there was none', async (t) => {
  const csiDrivers = cell<readonly NodeDriver[] | undefined>(undefined)
  const calls: [method: string, path: string, body?: unknown][] = []
  let csiNode: { readonly spec: { readonly drivers: readonly unknown[] } } | undefined
  let isAway = true
  const answer = (status: number, body: unknown) => ({ status, body, dateHeader: undefined })
  const api = {
    async get(path: string) {
      calls.push(['get', path])
      if (isAway) throw new Error('unreachable')
      if (path.startsWith('/api/v1/nodes/')) return answer(200, { metadata: { name: 'pi-1', uid: 'uid-1' } })
      return csiNode === undefined ? answer(404, {}) : answer(200, csiNode)
    },
    async post(path: string, body: unknown) {
      calls.push(['post', path, body])
      csiNode = body as typeof csiNode
      return answer(201, body)
    },
    async patch(path: string, body: unknown) {
      calls.push(['patch', path, body])
      if (path.includes('csinodes')) csiNode = body as typeof csiNode
      return answer(200, body)
    },
  }
  const clock = fakeClock()
  const log = quietLog(t)
  const stop = new AbortController()
  const running = csiNodeReport({ reads: { csiDrivers }, api, clock, log }, 'pi-1').run(stop.signal)
  csiDrivers.set([])
  await clock.advance(1_000)
  t.same(calls, [], 'a machine without drivers writes nothing')
  csiDrivers.set([driver])
  await until('the failure is logged', () => log.messages('warn').length === 1)
  isAway = false
  await clock.advance(2_000)
  await until('the CSINode is there', () => csiNode !== undefined)
  t.same(calls.find(([method]) => method === 'post')?.[2], {
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'CSINode' },
    metadata: { name: 'pi-1', ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'pi-1', uid: 'uid-1' }] },
    spec: { drivers: [{ name: 'a.example.com', nodeID: 'id' }] },
  })
  csiDrivers.set([])
  await until('its driver is taken off', () => csiNode?.spec.drivers.length === 0)
  t.equal(log.messages('warn').length, 1)
  stop.abort()
  await running
})
