import { test } from 'tap'
import type { Volume } from '../pod.ts'
import { aContainer, aSecuredPod, foundIn, hardened } from './testing/checked-pods.ts'

const withVolumes = (...volumes: readonly Volume[]) =>
  aSecuredPod({ containers: [aContainer('c', hardened)], volumes: [...volumes] })

test('restricted allows volumes of the API and claims', async (t) => {
  const allowed: readonly Volume[] = [
    { name: 'v', configMap: { name: 'a' } },
    { name: 'v', csi: { driver: 'a' } },
    { name: 'v', downwardAPI: {} },
    { name: 'v', emptyDir: {} },
    { name: 'v', ephemeral: {} },
    { name: 'v', persistentVolumeClaim: { claimName: 'a' } },
    { name: 'v', projected: {} },
    { name: 'v', secret: { secretName: 'a' } },
  ]
  for (const volume of allowed) t.equal(foundIn(withVolumes(volume), 'restricted'), '')
})

test('restricted names the type of any other volume', async (t) => {
  const types = [
    ...(['gcePersistentDisk', 'awsElasticBlockStore', 'gitRepo', 'nfs', 'iscsi', 'glusterfs', 'rbd'] as const),
    ...(['flexVolume', 'cinder', 'cephfs', 'flocker', 'fc', 'azureFile', 'vsphereVolume', 'quobyte'] as const),
    ...(['azureDisk', 'photonPersistentDisk', 'portworxVolume', 'scaleIO', 'storageos'] as const),
  ]
  const named = (type: string) => `restricted volume types (volume "v" uses restricted volume type "${type}")`
  for (const type of types) t.equal(foundIn(withVolumes({ name: 'v', [type]: {} }), 'restricted'), named(type))
  t.equal(foundIn(withVolumes({ name: 'v', hostPath: { path: '/a' } }), 'restricted'), named('hostPath'))
  t.equal(foundIn(withVolumes({ name: 'v', image: {} }), 'restricted'), named('unknown'))
  t.equal(
    foundIn(
      withVolumes(
        { name: 'a', nfs: { server: 'nas', path: '/' } },
        { name: 'b', emptyDir: {} },
        { name: 'c', image: {} },
      ),
      'restricted',
    ),
    'restricted volume types (volumes "a", "c" use restricted volume types "nfs", "unknown")',
  )
})
