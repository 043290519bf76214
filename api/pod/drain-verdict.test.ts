import { test } from 'tap'
import { aPod } from '../testing/builders.ts'
import { drainVerdict } from './drain-verdict.ts'

test('a drain leaves what comes back, and asks about what does not', async (t) => {
  const owned = (kind: string) => {
    const pod = aPod({ name: 'web' })
    const owner = { apiVersion: 'apps/v1', kind, name: 'web', uid: 'u', controller: true }
    return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } }
  }
  const bare = aPod({ name: 'web' })
  t.equal(drainVerdict(owned('ReplicaSet')).verdict, 'evict')
  t.equal(drainVerdict(owned('DaemonSet')).verdict, 'stay')
  t.equal(drainVerdict(bare).verdict, 'ask')
  t.equal(drainVerdict({ ...bare, status: { phase: 'Succeeded' } }).verdict, 'evict')
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  t.equal(drainVerdict({ ...bare, metadata: { ...bare.metadata, annotations } }).verdict, 'stay')
})
