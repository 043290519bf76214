/** The controllers of volumes over very many claims and volumes. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { backupScheduleAnnotation, backupToAnnotation } from '../../../api/backups/volume-backup.ts'
import { localProvisioner, poolAnnotation } from '../../../api/storage/pools.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { volumeControllers } from '../../controllers/volumes/volume-controllers.ts'
import { sessionBoard } from '../../sessions/session-board.ts'
import type { StoredObject } from '../../store/store.ts'
import { storageBoard } from '../../usage/storage-board.ts'
import { freshBackupKeys } from '../fresh-backup-keys.ts'
import { aStorageClass, aStoredClaim, aStoredVolume, claimRefTo } from '../volume-objects.ts'
import { type CaseOptions, type ControllerCase, controllerCase, type EndingCase } from './controller-cases.ts'

type World = Parameters<ControllerCase['fill']>[0]
type ClaimSpec = NonNullable<Parameters<typeof aStoredClaim>[1]>['spec']
type VolumeSpec = NonNullable<Parameters<typeof aStoredVolume>[1]>['spec']

const most = 4_000
const scheduled = 10_000
const some = 20
/** Few, so that the writes of the case itself are a small part of a turn. */
const writtenTogether = 20
/** Requirements of a selector: with the rest of its object nearly as many as a body may have. */
const requirements = 5_000

function each(count: number, act: (at: number) => Promise<unknown>): Promise<void> {
  const numbers = Array.from({ length: count }, (_, at) => at)
  return inParallel(numbers, writtenTogether, async (at) => void (await act(at)))
}

function addClaims({ store }: World, count: number, given?: ClaimSpec): Promise<void> {
  return each(count, (at) => {
    const { metadata, ...claim } = aStoredClaim(`data-${at}`, { spec: given })
    const finalizers = ['kubernetes.io/pvc-protection']
    return store.create('persistentvolumeclaims', {
      ...claim,
      metadata: { name: metadata.name, namespace: 'many', finalizers },
    })
  })
}

function addVolumes({ store }: World, first: number, count: number, given?: VolumeSpec): Promise<void> {
  return each(count, (at) => {
    const { metadata, ...volume } = aStoredVolume(`disk-${first + at}`, { spec: given })
    const finalizers = ['kubernetes.io/pv-protection']
    return store.create('persistentvolumes', { ...volume, metadata: { name: metadata.name, finalizers } })
  })
}

export function* volumeCases(options: CaseOptions): Generator<EndingCase> {
  for (const one of cases) yield controllerCase(one, options)
}

/** Waits until nothing is written any more; then this many claims are as `wanted`. */
async function settled(
  { store, clock }: World,
  count: number,
  wanted: (claim: StoredObject<'persistentvolumeclaims'>) => boolean,
): Promise<void> {
  for (let before = ''; before !== (await store.version()); await nextTurn()) {
    before = await store.version()
    await clock.advance(1_000)
  }
  const { length } = (await store.list('persistentvolumeclaims')).items.filter(wanted)
  if (length !== count) throw new Error(`${length} claims are as wanted instead of ${count}`)
}

const loops: ControllerCase['loops'] = (needs) =>
  volumeControllers({
    ...needs,
    storage: storageBoard(),
    sessions: sessionBoard(needs),
    backupKeys: freshBackupKeys(),
    origin: { id: 'store-1' },
  })
/** No volume has these labels. */
const selector = {
  matchLabels: { disk: 'fast' },
  matchExpressions: Array.from({ length: requirements }, (_, at) => ({
    key: `k${at}`,
    operator: 'DoesNotExist' as const,
  })),
}

/** As the provisioner of pools makes them, all of a class that has them backed up. */
function addScheduled({ store }: World, count: number): Promise<void> {
  return each(count, (at) => {
    const {
      metadata,
      status: _,
      ...volume
    } = aStoredVolume(`pool-${at}`, {
      spec: { local: { path: `/p/${at}` }, claimRef: claimRefTo(`data-${at}`), storageClassName: 'local-path' },
    })
    const annotations = { [volumeAnnotations.provisionedBy]: localProvisioner, [poolAnnotation]: 'pool-1' }
    return store.create('persistentvolumes', {
      ...volume,
      metadata: { name: metadata.name, annotations, finalizers: ['kubernetes.io/pv-protection'] },
    })
  })
}

const backedUp = (schedule: string) =>
  aStorageClass('local-path', {
    metadata: {
      name: 'local-path',
      annotations: { [backupToAnnotation]: 'pi-1:/mnt', [backupScheduleAnnotation]: schedule },
    },
  })

const cases: readonly ControllerCase[] = [
  {
    what: `${scheduled} volumes have a schedule for backups, and get another one`,
    loops,
    fill: async (world) => {
      await world.store.create('storageclasses', backedUp('0 3 * * *'))
      await addScheduled(world, scheduled)
    },
    act: async ({ store }) => {
      const found = await store.get('storageclasses', { namespace: '', name: 'local-path' })
      if (found === undefined) throw new Error('no class')
      const { annotations } = backedUp('0 4 * * *').metadata
      await store.update('storageclasses', { ...found, metadata: { ...found.metadata, annotations } })
    },
  },
  {
    what: `${most} claims wait, and ${some} get volumes`,
    loops,
    fill: (world) => addClaims(world, most),
    async act(world) {
      await addVolumes(world, 0, some)
      await settled(world, some, ({ status }) => status?.phase === 'Bound')
    },
  },
  {
    what: `${most} claims get a default class`,
    loops,
    fill: (world) => addClaims(world, most),
    async act(world) {
      const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
      await world.store.create('storageclasses', aStorageClass('fast', { metadata: { name: 'fast', annotations } }))
      await settled(world, most, ({ spec }) => spec?.storageClassName === 'fast')
    },
  },
  {
    what: `claims with large selectors wait beside ${most} volumes, and another one becomes free`,
    loops,
    fill: async (world) => {
      await addVolumes(world, 0, most)
      await addClaims(world, 20, { selector })
    },
    act: (world) => addVolumes(world, most, 1),
  },
  {
    what: `claims wait beside ${most} volumes that are of another mode, and another one becomes free`,
    loops,
    fill: async (world) => {
      await addVolumes(world, 0, most, { volumeMode: 'Block' })
      await addClaims(world, 300)
    },
    act: (world) => addVolumes(world, most, 1, { volumeMode: 'Block' }),
  },
  {
    what: 'claims are deleted together beside many pods',
    loops,
    fill: async (world) => {
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'another' } }]
      await each(world.pods, (at) => {
        const { metadata, ...pod } = aPod({ name: `web-${at}`, nodeName: 'pi-0', spec: { volumes } })
        return world.store.create('pods', { ...pod, metadata: { name: metadata.name, namespace: 'many' } })
      })
      await addClaims(world, 100)
    },
    act: ({ store }) =>
      each(100, async (at) => {
        const claim = await store.get('persistentvolumeclaims', { namespace: 'many', name: `data-${at}` })
        if (claim === undefined) throw new Error('no claim')
        const metadata = { ...claim.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 }
        await store.update('persistentvolumeclaims', { ...claim, metadata })
      }),
  },
]
