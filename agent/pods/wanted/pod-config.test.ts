import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { wantedPods } from './pod-config.ts'

const own = aPod({ name: 'web', uid: 'own' })
const desired = (...pods: readonly ReturnType<typeof aPod>[]) => ({ epoch: 'one', version: 1, pods })

test('a pod is removed only once all sources that may desire it, or another of its name, are known', async (t) => {
  const wanted = wantedPods(() => new Map([['here', 'default/web']]))
  wanted.setStatic(undefined)
  t.notOk(wanted.isDecided('here'))
  wanted.setStatic([aPod({ name: 'other', uid: 'other' })])
  t.notOk(wanted.isDecided('here'), 'a file has one of another name')
  wanted.setStatic([own])
  t.ok(wanted.isDecided('here'), 'a file has another of its name')
  wanted.setStatic([])
  t.notOk(wanted.isDecided('here'))
  wanted.setDesired(desired())
  t.ok(wanted.isDecided('here'))
})

test('nothing of a pod that cannot be decoded is removed', async (t) => {
  const wanted = wantedPods(() => new Map([['here', 'default/web']]))
  const misread = [{ kind: 'Pod', namespace: 'default', name: 'web', uid: 'here', why: 'spec' }] as const
  wanted.setDesired({ ...desired(), misread })
  t.notOk(wanted.isDecided('here'))
  t.same([...wanted.undecodable], ['here'])
  wanted.setDesired({ ...desired(aPod({ name: 'web', uid: 'here' })), misread })
  t.ok(wanted.isDecided('here'), 'as it was known before')
  wanted.setDesired(desired())
  t.ok(wanted.isDecided('here'), 'it is not desired any more')
})

test('a static pod runs when the last one of its name is removed, and is dropped when nothing is left of it', async (t) => {
  let here = new Map([['older', 'default/web']])
  const wanted = wantedPods(() => here)
  t.same(wanted.setStatic([own]), [])
  here = new Map()
  t.same(wanted.refresh(), ['own'])
  t.same(wanted.refresh(), [])
  here = new Map([['own', 'default/web']])
  t.same(wanted.setStatic([]), ['own'])
  t.same([...wanted.staticUIDs], ['own'], 'it runs still')
  here = new Map()
  wanted.refresh()
  t.same([...wanted.staticUIDs], [])
})

test('the older ones have the older right', async (t) => {
  const born = (name: string, creationTimestamp: string) => {
    const pod = aPod({ name, uid: name })
    return { ...pod, metadata: { ...pod.metadata, creationTimestamp } }
  }
  const wanted = wantedPods(() => new Map())
  wanted.setDesired(desired(born('young', '2026-01-02T00:00:00Z'), born('old', '2026-01-01T00:00:00Z')))
  t.same(wanted.oldestFirst(['young', 'old', 'young']), ['old', 'young'])
  t.same(wanted.oldestFirst(['young', 'not desired', 'old']), ['not desired', 'old', 'young'])
})

test('a pod that is desired, or that a file declares, is decided before the other source is known', async (t) => {
  let here = new Map([
    ['own', 'default/web'],
    ['older', 'default/db'],
  ])
  const wanted = wantedPods(() => here)
  wanted.setStatic(undefined)
  wanted.setDesired(desired(own))
  t.ok(wanted.isDecided('own'))
  t.notOk(wanted.isDecided('older'), 'a file may declare one of its name')
  const files = wantedPods(() => here)
  files.setStatic([own])
  files.setStatic([])
  t.ok(files.isDecided('own'), 'its file is gone')
  t.notOk(files.isDecided('older'))
  here = new Map()
  files.refresh()
  t.notOk(files.isDecided('own'))
})

test('both sources, and what is desired by them, can be read', async (t) => {
  const wanted = wantedPods(() => new Map())
  t.same([wanted.desired, wanted.isWhole, wanted.staticPods, wanted.all.size], [undefined, false, [], 0])
  const message = desired(aPod({ name: 'db', uid: 'db' }))
  wanted.setDesired(message, 'copy')
  wanted.setStatic([own])
  t.same([wanted.desired, wanted.isWhole, wanted.staticPods], [message, false, [own]])
  t.same([...wanted.all.keys()].sort(), ['db', 'own'])
  wanted.setDesired(message)
  t.equal(wanted.isWhole, true)
})
