/** The check of `restricted` for the types of volumes. */
import type { Volume } from '../pod.ts'
import { distinct, plural, quotedList, type SecurityCheck } from './security-check.ts'

type Source = Exclude<keyof Volume, 'name'>

const allowed: readonly Source[] = [
  ...(['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim'] as const),
  ...(['projected', 'secret'] as const),
]

/** Those that the check has a name for; any other is `unknown`. */
const restricted: readonly Source[] = [
  ...(['hostPath', 'gcePersistentDisk', 'awsElasticBlockStore', 'gitRepo', 'nfs', 'iscsi', 'glusterfs'] as const),
  ...(['rbd', 'flexVolume', 'cinder', 'cephfs', 'flocker', 'fc', 'azureFile', 'vsphereVolume', 'quobyte'] as const),
  ...(['azureDisk', 'photonPersistentDisk', 'portworxVolume', 'scaleIO', 'storageos'] as const),
]

export const restrictedVolumes: SecurityCheck = {
  name: 'restrictedVolumes',
  level: 'restricted',
  replaces: 'hostPathVolumes',
  versions: [
    {
      since: 0,
      check({ spec: { volumes = [] } }) {
        const bad = volumes.filter((volume) => allowed.every((source) => volume[source] === undefined))
        if (bad.length === 0) return undefined
        const types = distinct(bad.map((volume) => restricted.find((one) => volume[one] !== undefined) ?? 'unknown'))
        const names = quotedList(bad.map(({ name }) => name))
        const use = bad.length === 1 ? 'uses' : 'use'
        const what = `${plural('restricted volume type', types)} ${quotedList(types)}`
        return { reason: 'restricted volume types', detail: `${plural('volume', bad)} ${names} ${use} ${what}` }
      },
    },
  ],
}
