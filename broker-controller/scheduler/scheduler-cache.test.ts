import { test } from 'tap'
import { poolsAnnotation } from '../../api/storage/pools.ts'
import { aNode } from '../../api/testing/builders.ts'
import { decidesDifferently, observationGate } from './scheduler-cache.ts'

test('what is observed during a decision is passed on after it, in order, also when it fails', async (t) => {
  const gate = observationGate()
  const seen: string[] = []
  const observeNode = gate.through<string>((node) => void seen.push(`node ${node}`))
  const observePod = gate.through<string>((pod) => void seen.push(`pod ${pod}`))
  observePod('a', undefined)
  t.same(seen, ['pod a'], 'at once')
  await gate.closedDuring(async () => {
    observePod('b', undefined)
    observeNode('c', undefined)
    t.same(seen, ['pod a'])
  })
  t.same(seen, ['pod a', 'pod b', 'node c'])
  const failing = gate.closedDuring(async () => {
    observePod('d', undefined)
    throw new Error('no decision')
  })
  await t.rejects(failing, { message: 'no decision' })
  t.same(seen.slice(3), ['pod d'])
})

test('a pool that a node reports as full, or no longer as full, may decide differently, and a heartbeat does not', async (t) => {
  const node = (annotations: { readonly [name: string]: string }) => {
    const { metadata, ...rest } = aNode({ name: 'pi-1', annotations })
    return {
      ...rest,
      metadata: {
        ...metadata,
        name: 'pi-1',
        uid: 'u',
        resourceVersion: '1',
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
    }
  }
  const reports = (full: boolean) =>
    node({ [poolsAnnotation]: JSON.stringify([{ id: 'p', path: '/p', ...(full && { full }) }]) })
  t.equal(decidesDifferently(reports(true), reports(false)), true)
  t.equal(decidesDifferently(reports(true), reports(true)), false)
  t.equal(decidesDifferently(node({ 'example.com/seen': '1' }), node({ 'example.com/seen': '2' })), false)
})
