import { test } from 'tap'
import type { ViewRights } from '../../api/dashboard/dashboard-messages.ts'
import { alarm } from '../../daemon/alarm.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { fleetViewer } from './fleet-viewer.ts'

const none: ViewRights = { nodes: false, usage: false, requests: false, pods: false, events: false, workloads: false }

function aViewer(identity = async () => ({ user: 'jane', groups: [] })) {
  const leaving = new AbortController()
  const viewer = fleetViewer({ identity, rights: none, wake: alarm(fakeClock()), signal: leaving.signal })
  return { viewer, leave: () => leaving.abort() }
}

test('changes wait in their order, from the first list on', async (t) => {
  const { viewer } = aViewer()
  viewer.send(Buffer.from('too early'))
  t.equal(viewer.next(), undefined, 'the list has it')
  viewer.needsReset = false
  viewer.send(Buffer.from('a'))
  viewer.send(Buffer.from('b'))
  await viewer.wait()
  t.same([viewer.next()?.toString(), viewer.next()?.toString(), viewer.next()], ['a', 'b', undefined])
})

test('a page that reads too slowly begins again instead of filling the memory', async (t) => {
  const { viewer } = aViewer()
  viewer.needsReset = false
  for (let i = 0; i < 5; i++) viewer.send(Buffer.alloc(1024 * 1024))
  t.equal(viewer.needsReset, true)
  t.equal(viewer.next(), undefined)
})

test('with other rights a page begins again; without an identity it ends', async (t) => {
  let isGone = false
  const { viewer } = aViewer(async () => {
    if (isGone) throw new Error('revoked')
    return { user: 'jane', groups: [] }
  })
  viewer.needsReset = false
  await viewer.check(async () => none)
  t.equal(viewer.needsReset, false)
  viewer.send(Buffer.from('of the old rights'))
  await viewer.check(async () => ({ ...none, nodes: true }))
  t.equal(viewer.needsReset, true)
  t.equal(viewer.next(), undefined, 'nothing of the old rights is sent')
  t.match(viewer.rights, { nodes: true })
  isGone = true
  await viewer.check(async () => none)
  t.equal(viewer.ended, true)
  await viewer.aborted
})

test('a page that is closed ends', async (t) => {
  const { viewer, leave } = aViewer()
  t.equal(viewer.ended, false)
  leave()
  t.equal(viewer.ended, true)
  await viewer.wait()
})
