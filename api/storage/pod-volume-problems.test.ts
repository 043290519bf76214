import { test } from 'tap'
import type { Container, Pod, PodSpec, Volume } from '../pod.ts'
import { problemText } from '../problem.ts'
import { aPod } from '../testing/builders.ts'
import { claimVolumeProblems, devicesProblems, podClaimProblems } from './pod-volume-problems.ts'

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

const deviceSpec: Pick<PodSpec, 'volumes'> = {
  volumes: [
    { name: 'claim', persistentVolumeClaim: { claimName: 'data' } },
    { name: 'other', persistentVolumeClaim: { claimName: 'other' } },
    { name: 'scratch', ephemeral: {} },
    { name: 'folder', emptyDir: {} },
  ],
}
type Devices = NonNullable<Container['volumeDevices']>
const deviceProblems = (volumeDevices: Devices, volumeMounts: Container['volumeMounts'] = []) =>
  devicesProblems('c', { volumeDevices, volumeMounts }, deviceSpec).map(problemText)

test('a container has the block volumes of claims as devices', async (t) => {
  const devices = [
    { name: 'claim', devicePath: '/dev/a' },
    { name: 'scratch', devicePath: '/dev/b' },
  ]
  t.same(deviceProblems(devices, [{ name: 'other', mountPath: '/data' }]), [])
  t.same(deviceProblems([]), [])
})

test('a device is refused in the words of Kubernetes', async (t) => {
  const only = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
  t.same(deviceProblems([{ name: 'folder', devicePath: '/dev/a' }]), [
    `c.volumeDevices[0].name: Invalid value: "folder": ${only}`,
  ])
  t.same(deviceProblems([{ name: 'none', devicePath: '/dev/a' }]), ['c.volumeDevices[0].name: Not found: "none"'])
  t.same(deviceProblems([{ name: 'claim', devicePath: '' }]), ['c.volumeDevices[0].devicePath: Required value'])
  t.same(deviceProblems([{ name: 'claim', devicePath: '/dev/../a' }]), [
    `c.volumeDevices[0].devicePath: Invalid value: "/dev/../a": can not contain backsteps ('..')`,
  ])
  const twice = { name: 'claim', devicePath: '/dev/a' }
  t.same(deviceProblems([twice, twice]), [
    'c.volumeDevices[1].name: Invalid value: "claim": must be unique',
    'c.volumeDevices[1].devicePath: Invalid value: "/dev/a": must be unique',
  ])
  t.same(deviceProblems([twice], [{ name: 'claim', mountPath: '/dev/a' }]), [
    'c.volumeMounts[0].name: Invalid value: "claim": must not already exist in volumeDevices',
    'c.volumeMounts[0].mountPath: Invalid value: "/dev/a": must not already exist as a path in volumeDevices',
    'c.volumeDevices[0].name: Invalid value: "claim": must not already exist in volumeMounts',
    'c.volumeDevices[0].devicePath: Invalid value: "/dev/a": must not already exist as a path in volumeMounts',
  ])
})
