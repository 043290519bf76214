import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import type { StoredObject } from '../../store/store.ts'
import { aClusterWithVolumes, storedClass, using, type VolumeObjects } from '../../testing/pods-with-claims.ts'
import { aStoredClaim, aStoredVolume } from '../../testing/volume-objects.ts'
import { exceedsLimit, limitedVolume } from './volume-limits.ts'

const driver = 'disk.example.com'
const classes = [storedClass('csi', { provisioner: driver })]
const ofDriver = (name: string, volumeHandle = name) => aStoredVolume(name, { spec: { csi: { driver, volumeHandle } } })
const bound = (name: string, volumeName = name) =>
  aStoredClaim(name, {
    metadata: { annotations: { [volumeAnnotations.bindCompleted]: 'yes' } },
    spec: { volumeName, storageClassName: 'csi' },
  })

test('a volume of a driver takes one of its places, also before it is made', async (t) => {
  const volumes = [ofDriver('one'), ofDriver('same', 'one'), aStoredVolume('local')]
  const { volumes: view } = aClusterWithVolumes({ classes, volumes })
  const of = (claim: ReturnType<typeof aStoredClaim>) => limitedVolume(claim, view)
  t.equal(of(bound('one'))?.driver, driver)
  t.same(of(bound('one')), of(bound('other', 'same')), 'two volumes with one handle are one')
  t.equal(of(bound('data', 'local')), undefined, 'not of a driver')
  const late = aStoredClaim('new', { spec: { storageClassName: 'csi' } })
  t.same(of(late), { driver, id: 'default/new' })
  t.equal(of(aStoredClaim('new', { spec: { storageClassName: 'unknown' } })), undefined)
  t.equal(of(aStoredClaim('new')), undefined, 'no class')
})

test('a claim whose volume does not exist counts by its class', async (t) => {
  const { volumes: view } = aClusterWithVolumes({ classes })
  t.same(limitedVolume(bound('data', 'gone'), view), { driver, id: 'default/data' })
})

test('a node takes volumes up to the limit of the driver, and those that it has already', async (t) => {
  const names = ['one', 'two', 'three']
  const claims = [...names.map((name) => bound(name)), bound('shared', 'one'), bound('card', 'local')]
  const volumes = [...names.map((name) => ofDriver(name)), aStoredVolume('local')]
  const cases: readonly (readonly [string, present: string[], wanted: string[], limit: number | undefined, boolean])[] =
    [
      ['no limit', ['one', 'two'], ['three'], undefined, false],
      ['the last place', ['one'], ['two'], 2, false],
      ['one too many', ['one', 'two'], ['three'], 2, true],
      ['two more, and one place', ['one'], ['two', 'three'], 2, true],
      ['a driver that takes none', [], ['one'], 0, true],
      ['it is there already', ['one', 'two'], ['two'], 2, false],
      ['it is there under another claim', ['shared', 'two'], ['one'], 2, false],
      ['there are too many already, and it is one of them', ['one', 'two'], ['one'], 1, false],
      ['one of them is there already', ['one', 'two'], ['two', 'three'], 2, true],
      ['a volume of no driver', ['one', 'two'], ['card'], 2, false],
      ['volumes of no driver take no place', ['card', 'one'], ['two'], 2, false],
      ['no volumes', ['one', 'two'], [], 1, false],
    ]
  for (const [title, present, wanted, count, expected] of cases) {
    const pods = present.map((name) => ({ name, nodeName: 'a', spec: using(name) }))
    t.equal(exceeds({ classes, claims, volumes, bound: pods }, wanted, count), expected, title)
  }
})

function exceeds(objects: VolumeObjects, wanted: readonly string[], count: number | undefined): boolean {
  const known = aClusterWithVolumes(objects)
  known.volumes.csi.putNode('a', csiNode(count))
  const node = known.node('a')
  if (node === undefined) throw new Error('no node')
  const limited = wanted.flatMap((name) => {
    const claim = known.volumes.claim(`default/${name}`)
    return (claim && limitedVolume(claim, known.volumes)) ?? []
  })
  return exceedsLimit(limited, node, known.volumes)
}

function csiNode(count: number | undefined): StoredObject<'csinodes'> {
  const metadata = { name: 'a', uid: 'uid-a', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' }
  const allocatable = count === undefined ? {} : { allocatable: { count } }
  return {
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata },
    spec: { drivers: [{ name: driver, nodeID: 'a', ...allocatable }] },
  }
}
