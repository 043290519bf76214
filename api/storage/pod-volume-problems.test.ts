import { test } from 'tap'
import type { Pod, Volume } from '../pod.ts'
import { problemText } from '../problem.ts'
import { aPod } from '../testing/builders.ts'
import { claimVolumeProblems, podClaimProblems } from './pod-volume-problems.ts'

const template = (metadata = {}, spec = {}) => ({
  volumeClaimTemplate: {
    metadata,
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  },
})
const wrong = (source: Partial<Volume>) =>
  claimVolumeProblems('spec.volumes[0]', { name: 'data', ...source }).map(problemText)
const podWith = (...volumes: Volume[]): Pod => {
  const pod = aPod({ name: 'web' })
  return { ...pod, spec: { ...pod.spec, volumes } }
}

test('a volume names its claim', async (t) => {
  t.same(wrong({ persistentVolumeClaim: { claimName: 'data' } }), [])
  t.same(wrong({ persistentVolumeClaim: { claimName: '' } }), [
    'spec.volumes[0].persistentVolumeClaim.claimName: Required value',
  ])
})

test('a claim that is made for a pod has labels, annotations and what any claim asks for', async (t) => {
  t.same(wrong({ ephemeral: template({ labels: { a: 'b' }, annotations: { a: 'b' } }) }), [])
  t.same(wrong({ ephemeral: {} }), ['spec.volumes[0].ephemeral.volumeClaimTemplate: Required value'])
  const at = 'spec.volumes[0].ephemeral.volumeClaimTemplate'
  t.same(wrong({ ephemeral: template({ name: 'mine', finalizers: ['a/b'] }, { accessModes: [] }) }), [
    `${at}.metadata.name: Forbidden: cannot be set`,
    `${at}.metadata.finalizers: Forbidden: cannot be set`,
    `${at}.spec.accessModes: Required value: at least 1 access mode is required`,
  ])
})

test('a pod neither names a claim that is made for it nor makes one without a valid name', async (t) => {
  const made = { name: 'scratch', ephemeral: template() }
  t.same(podClaimProblems(podWith(made, { name: 'data', persistentVolumeClaim: { claimName: 'other' } })), [])
  const both = podWith(made, { name: 'data', persistentVolumeClaim: { claimName: 'web-scratch' } })
  t.same(podClaimProblems(both).map(problemText), [
    'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "web-scratch": must not reference a PVC that gets created for an ephemeral volume',
  ])
  const long = podWith({ ...made, name: 'a'.repeat(250) })
  t.match(podClaimProblems(long).map(problemText), [
    /^spec.volumes\[0\].name: Invalid value: .*: PVC name "web-a+": must be no more than 253 characters$/,
  ])
})
