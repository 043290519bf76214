import { test } from 'tap'
import { compareQuantities } from '../../../api/quantity.ts'
import {
  capacityOfVolume,
  classOfClaim,
  classOfVolume,
  hasAccessModesOf,
  hasVolumeModeOf,
  isLargeEnoughFor,
  isReservedFor,
} from '../../../api/storage/volume-matching.ts'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import type { StoredClaim } from './bind-writes.ts'
import { type StoredVolume, volumeIndex } from './volume-index.ts'

type ClaimSpec = NonNullable<StoredClaim['spec']>

const chosen = (
  volumes: readonly StoredVolume[],
  spec: ClaimSpec = {},
  how: { delayed?: boolean; taken?: readonly string[] } = {},
) => {
  const index = volumeIndex()
  for (const volume of volumes) index.put(volume)
  const isTaken = (name: string) => how.taken?.includes(name) === true
  return index.choose(aStoredClaim('data', { spec }), { delayed: how.delayed === true, isTaken })?.metadata.name
}
const sized = (name: string, storage: string, more: Parameters<typeof aStoredVolume>[1] = {}) =>
  aStoredVolume(name, { ...more, spec: { ...more.spec, capacity: { storage } } })

test('the smallest volume that is large enough is chosen', async (t) => {
  const volumes = [sized('large', '1Ti'), sized('small', '512Mi'), sized('fits', '2Gi'), sized('more', '3Gi')]
  t.equal(chosen(volumes), 'fits')
  t.equal(chosen(volumes, { resources: { requests: { storage: '3000Mi' } } }), 'more')
  t.equal(chosen(volumes, { resources: { requests: { storage: '2Ti' } } }), undefined)
  t.equal(chosen([sized('b', '1Gi'), sized('a', '1073741824')]), 'a', 'of equal ones the first by name')
  t.equal(chosen(volumes, {}, { taken: ['fits'] }), 'more', 'another claim is about to get the smallest')
})

test('a volume is not given to a claim that it does not suit', async (t) => {
  const cases: readonly {
    title: string
    volume: Parameters<typeof aStoredVolume>[1]
    claim?: ClaimSpec
    is: boolean
  }[] = [
    { title: 'as it is', volume: {}, is: true },
    { title: 'another class', volume: { spec: { storageClassName: 'fast' } }, is: false },
    {
      title: 'the same class',
      volume: { spec: { storageClassName: 'fast' } },
      claim: { storageClassName: 'fast' },
      is: true,
    },
    { title: 'no class and the empty class', volume: { spec: { storageClassName: '' } }, is: true },
    {
      title: 'the class of the old annotation',
      volume: { metadata: { annotations: { 'volume.beta.kubernetes.io/storage-class': 'old' } } },
      claim: { storageClassName: 'old' },
      is: true,
    },
    { title: 'a block device', volume: { spec: { volumeMode: 'Block' } }, is: false },
    {
      title: 'a block device for who wants one',
      volume: { spec: { volumeMode: 'Block' } },
      claim: { volumeMode: 'Block' },
      is: true,
    },
    { title: 'fewer access modes', volume: {}, claim: { accessModes: ['ReadWriteOnce', 'ReadOnlyMany'] }, is: false },
    { title: 'one pod only', volume: {}, claim: { accessModes: ['ReadWriteOncePod'] }, is: false },
    { title: 'being deleted', volume: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, is: false },
    { title: 'not available yet', volume: { status: { phase: 'Pending' } }, is: false },
    { title: 'released', volume: { status: { phase: 'Released' } }, is: false },
    { title: 'reserved for another claim', volume: { spec: { claimRef: claimRefTo('other') } }, is: false },
    {
      title: 'reserved for an earlier claim of the name',
      volume: { spec: { claimRef: claimRefTo('data', 'old') } },
      is: false,
    },
    { title: 'with attributes', volume: { spec: { volumeAttributesClassName: 'gold' } }, is: false },
    { title: 'other labels', volume: {}, claim: { selector: { matchLabels: { disk: 'ssd' } } }, is: false },
    {
      title: 'its labels',
      volume: { metadata: { labels: { disk: 'ssd' } } },
      claim: {
        selector: { matchLabels: { disk: 'ssd' }, matchExpressions: [{ key: 'old', operator: 'DoesNotExist' }] },
      },
      is: true,
    },
  ]
  for (const { title, volume, claim, is } of cases) {
    t.equal(chosen([aStoredVolume('one', volume)], claim), is ? 'one' : undefined, title)
  }
})

test('a volume that names the claim comes first, whatever its class, labels and phase', async (t) => {
  const reserved = (claimRef: object, more: object = {}) =>
    aStoredVolume('reserved', {
      spec: { capacity: { storage: '5Gi' }, storageClassName: 'other', claimRef, ...more },
      status: { phase: 'Bound' },
    })
  const selecting = { selector: { matchLabels: { disk: 'ssd' } } }
  const free = aStoredVolume('free', { metadata: { labels: { disk: 'ssd' } } })
  t.equal(chosen([free, reserved(claimRefTo('data', ''))], selecting), 'reserved')
  t.equal(chosen([free, reserved(claimRefTo('data'))], selecting), 'reserved')
  t.equal(chosen([free, reserved(claimRefTo('data', 'earlier'))], selecting), 'free')
  t.equal(chosen([free, reserved(claimRefTo('data'), { volumeMode: 'Block' })]), 'free')
  t.equal(chosen([free, reserved(claimRefTo('data'), { capacity: { storage: '1Mi' } })]), 'free')
  const both = [
    aStoredVolume('a', { spec: { claimRef: claimRefTo('data', '') } }),
    aStoredVolume('b', { spec: { claimRef: claimRefTo('data') } }),
  ]
  t.equal(chosen(both), 'b', 'one that was about to be bound is bound first')
})

test('a claim that waits for its consumer gets only what is reserved for it', async (t) => {
  t.equal(chosen([aStoredVolume('free')], {}, { delayed: true }), undefined)
  const reserved = aStoredVolume('reserved', { spec: { claimRef: claimRefTo('data') } })
  t.equal(chosen([aStoredVolume('free'), reserved], {}, { delayed: true }), 'reserved')
})

test('volumes that many machines can write stay for claims that ask for them', async (t) => {
  const many = aStoredVolume('many', { spec: { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] } })
  const one = sized('one', '1Ti')
  t.equal(chosen([many, one]), 'one')
  t.equal(chosen([many, one], { accessModes: ['ReadWriteMany'] }), 'many')
  t.equal(chosen([many], {}), 'many')
  const reserved = { ...many, spec: { ...many.spec, claimRef: claimRefTo('data', '') } }
  t.equal(
    chosen([reserved, one]),
    'one',
    'the same as in Kubernetes: sets of access modes are tried one after the other',
  )
})

/** As Kubernetes does it: all volumes of a set of access modes after another. */
function naiveChoice(volumes: readonly StoredVolume[], claim: StoredClaim, delayed: boolean): string | undefined {
  const modesOf = ({ spec }: StoredVolume) => [...(spec?.accessModes ?? [])].sort().join()
  const sets = [...new Set(volumes.filter((one) => hasAccessModesOf(one, claim)).map(modesOf))]
  sets.sort((a, b) => a.split(',').length - b.split(',').length || (a < b ? -1 : 1))
  for (const set of sets) {
    const able = volumes
      .filter((one) => modesOf(one) === set && isLargeEnoughFor(one, claim) && hasVolumeModeOf(one, claim))
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    const reserved = able.filter((one) => isReservedFor(one, claim)).sort(bySize)
    const found = reserved.find(({ spec }) => spec?.claimRef?.uid) ?? reserved[0]
    if (found !== undefined) return found.metadata.name
    const free = able.filter(
      (one) =>
        one.spec?.claimRef === undefined &&
        one.status?.phase === 'Available' &&
        classOfVolume(one) === (classOfClaim(claim) ?? ''),
    )
    free.sort(bySize)
    if (!delayed && free[0] !== undefined) return free[0].metadata.name
  }
  return undefined
}

function bySize(a: StoredVolume, b: StoredVolume): number {
  const difference = compareQuantities(capacityOfVolume(a), capacityOfVolume(b))
  return difference || (a.metadata.name < b.metadata.name ? -1 : 1)
}

test('whatever is put, replaced and removed, the choice is that of a search through all volumes', async (t) => {
  let found = 0
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed)
    const among = <T>(all: readonly T[]) => all[Math.floor(random() * all.length)] as T
    const modes = () =>
      among([['ReadWriteOnce'], ['ReadWriteMany'], ['ReadWriteMany', 'ReadWriteOnce'], ['ReadWriteOncePod']])
    const size = () => among(['512Mi', '1Gi', '1073741824', '2G', '3Gi'])
    const index = volumeIndex()
    const present = new Map<string, StoredVolume>()
    for (let step = 0; step < 150; step++) {
      const name = `v${Math.floor(random() * 25)}`
      if (random() < 0.2) {
        present.delete(name)
        index.remove(name)
      } else {
        const volume = aStoredVolume(name, {
          metadata: random() < 0.1 ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {},
          spec: {
            accessModes: modes(),
            capacity: { storage: size() },
            storageClassName: among(['', 'fast']),
            volumeMode: among(['Filesystem', 'Filesystem', 'Block']),
            ...(random() < 0.3 && { claimRef: claimRefTo(among(['a', 'b']), among(['', 'uid-a', 'uid-b'])) }),
          },
          status: { phase: among(['Available', 'Available', 'Bound', 'Released']) },
        })
        present.set(name, volume)
        index.put(volume)
      }
      const spec = {
        accessModes: modes(),
        resources: { requests: { storage: size() } },
        storageClassName: among(['', 'fast']),
      }
      const claim = aStoredClaim(among(['a', 'b', 'c']), { spec })
      const delayed = random() < 0.3
      const expected = naiveChoice([...present.values()], claim, delayed)
      if (expected !== undefined) found++
      const got = index.choose(claim, { delayed })?.metadata.name
      if (got !== expected) t.equal(got, expected, `seed ${seed}, step ${step}`)
    }
  }
  t.ok(found > 2_000, `${found} choices`)
})
