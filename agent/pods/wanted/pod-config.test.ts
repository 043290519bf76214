import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { wantedPods } from './pod-config.ts'

const own = aPod({ name: 'web', uid: 'own' })
const desired = (...pods: readonly ReturnType<typeof aPod>[]) => ({ epoch: 'one', version: 1, pods })

test('a pod is removed only once all were heard who may want it, or another in its place', async (t) => {
  const wanted = wantedPods(() => new Map([['here', 'default/web']]))
  wanted.hearOwn(undefined)
  t.notOk(wanted.isDecided('here'))
  wanted.hearOwn([own])
  t.ok(wanted.isDecided('here'), 'a file has another of its name')
  wanted.hearOwn([])
  t.notOk(wanted.isDecided('here'))
  wanted.hear(desired())
  t.ok(wanted.isDecided('here'))
})

test('of a pod that is wanted in words nobody knows nothing is removed', async (t) => {
  const wanted = wantedPods(() => new Map([['here', 'default/web']]))
  const misread = [{ kind: 'Pod', namespace: 'default', name: 'web', uid: 'here', why: 'spec' }] as const
  wanted.hear({ ...desired(), misread })
  t.notOk(wanted.isDecided('here'))
  t.same([...wanted.misread], ['here'])
  wanted.hear({ ...desired(aPod({ name: 'web', uid: 'here' })), misread })
  t.ok(wanted.isDecided('here'), 'as it was known before')
  wanted.hear(desired())
  t.ok(wanted.isDecided('here'), 'nobody wants it any more')
})

test('a machine’s own pod has its turn when the last one of its name is gone, and is forgotten when nothing is left of it', async (t) => {
  let here = new Map([['older', 'default/web']])
  const wanted = wantedPods(() => here)
  t.same(wanted.hearOwn([own]), [])
  here = new Map()
  t.same(wanted.lookAgain(), ['own'])
  t.same(wanted.lookAgain(), [])
  here = new Map([['own', 'default/web']])
  t.same(wanted.hearOwn([]), ['own'])
  t.same([...wanted.ownUIDs], ['own'], 'it runs still')
  here = new Map()
  wanted.lookAgain()
  t.same([...wanted.ownUIDs], [])
})

test('the older ones have the older right', async (t) => {
  const born = (name: string, creationTimestamp: string) => {
    const pod = aPod({ name, uid: name })
    return { ...pod, metadata: { ...pod.metadata, creationTimestamp } }
  }
  const wanted = wantedPods(() => new Map())
  wanted.hear(desired(born('young', '2026-01-02T00:00:00Z'), born('old', '2026-01-01T00:00:00Z')))
  t.same(wanted.oldestFirst(['young', 'old', 'young']), ['old', 'young'])
})
