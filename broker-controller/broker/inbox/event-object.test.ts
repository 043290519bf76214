import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { involvedObjectOf } from './event-object.ts'

test('an event is about the node that sends it, or one of its pods', async (t) => {
  const pods = [aPod({ name: 'web', uid: 'u1', nodeName: 'pi-1' })]
  const about = (involvedObject: object) => {
    const event = { apiVersion: 'v1', kind: 'Event', metadata: {}, involvedObject } as const
    return involvedObjectOf('pi-1', event, pods) !== undefined
  }
  t.ok(about({ kind: 'Node', name: 'pi-1', uid: 'pi-1' }))
  t.notOk(about({ kind: 'Node', name: 'pi-2' }))
  t.ok(about({ kind: 'Pod', namespace: 'default', name: 'web', uid: 'u1', fieldPath: 'spec.containers{main}' }))
  t.notOk(about({ kind: 'Pod', namespace: 'default', name: 'other', uid: 'u1' }))
  t.notOk(about({ kind: 'Pod', namespace: 'default', name: 'web', uid: 'u2' }))
  t.notOk(about({ kind: 'Pod', namespace: 'other', name: 'web', uid: 'u1' }))
  t.notOk(about({ kind: 'Pod', uid: 'u2' }))
  t.notOk(about({ kind: 'Secret', namespace: 'default', name: 'web' }))
  pods.push(aPod({ name: 'own', nodeName: 'pi-1', annotations: { 'kubernetes.io/config.mirror': 'hash' } }))
  t.ok(
    about({ kind: 'Pod', namespace: 'default', name: 'own', uid: 'hash' }),
    'of a static pod by its UID on the machine',
  )
  const strayed = { kind: 'Node', name: 'pi-1', namespace: 'kube-system', fieldPath: 'spec' }
  t.same(
    involvedObjectOf('pi-1', { apiVersion: 'v1', kind: 'Event', metadata: {}, involvedObject: strayed }, pods),
    { apiVersion: 'v1', kind: 'Node', name: 'pi-1', uid: 'pi-1' },
    'a node has no namespace, whatever the event states',
  )
})
