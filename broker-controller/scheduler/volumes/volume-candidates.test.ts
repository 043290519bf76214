import { test } from 'tap'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { aClusterWithVolumes, onNodes } from '../../testing/pods-with-claims.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import type { KnownClaim, KnownVolume } from './volume-cache.ts'
import { candidatesFor, isBindable, isReachable } from './volume-candidates.ts'

type VolumeParts = Parameters<typeof aStoredVolume>[1]

const claim = (spec: KnownClaim['spec'] = {}): KnownClaim =>
  aStoredClaim('data', { spec: { storageClassName: 'fixed', ...spec } })
const volume = (name: string, { spec, ...parts }: NonNullable<VolumeParts> = {}): KnownVolume =>
  aStoredVolume(name, { ...parts, spec: { storageClassName: 'fixed', ...spec } })

test('a claim may take a volume that has all it asks for and that nothing has', async (t) => {
  const cases: readonly [title: string, is: boolean, of: VolumeParts, asks?: KnownClaim['spec']][] = [
    ['as it is', true, {}],
    ['too small', false, { spec: { capacity: { storage: '1023Mi' } } }],
    ['larger', true, { spec: { capacity: { storage: '1Ti' } } }],
    ['another class', false, { spec: { storageClassName: 'late' } }],
    [
      'class by annotation',
      true,
      { metadata: { annotations: { 'volume.beta.kubernetes.io/storage-class': 'fixed' } } },
    ],
    ['a block device', false, { spec: { volumeMode: 'Block' } }],
    ['both block devices', true, { spec: { volumeMode: 'Block' } }, { volumeMode: 'Block' }],
    ['an access mode that it lacks', false, {}, { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }],
    ['an attributes class', false, { spec: { volumeAttributesClassName: 'gold' } }],
    ['not available yet', false, { status: { phase: 'Pending' } }],
    ['released', false, { status: { phase: 'Released' } }],
    ['being deleted', false, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }],
    ['labels that the claim selects', true, { metadata: { labels: { disk: 'ssd' } } }, selecting('ssd')],
    ['other labels', false, { metadata: { labels: { disk: 'hdd' } } }, selecting('ssd')],
    ['no labels', false, {}, selecting('ssd')],
    ['taken', false, { spec: { claimRef: claimRefTo('other') } }],
    ['reserved for it', true, { spec: { claimRef: claimRefTo('data', '') }, status: { phase: 'Pending' } }],
    ['reserved for it, in another class', true, { spec: { claimRef: claimRefTo('data'), storageClassName: 'late' } }],
    ['reserved for it, and too small', false, { spec: { claimRef: claimRefTo('data'), capacity: { storage: '1Mi' } } }],
    ['reserved for an earlier claim of its name', false, { spec: { claimRef: claimRefTo('data', 'older') } }],
  ]
  for (const [title, is, of, asks] of cases) t.equal(isBindable(volume('disk', of), claim(asks)), is, title)
})

function selecting(disk: string): KnownClaim['spec'] {
  return { selector: { matchLabels: { disk } } }
}

test('the smallest of the volumes that a node reaches is found, wherever the others are', async (t) => {
  const random = seededRandom(7)
  const below = (count: number) => Math.floor(random() * count)
  const nodes = ['a', 'b', 'c', 'd'].map((name) => ({ name, labels: { zone: name < 'c' ? 'attic' : 'cellar' } }))
  const term = (key: string, value: string) => ({
    matchExpressions: [{ key, operator: 'In' as const, values: [value] }],
  })
  const places: readonly KnownVolume['spec'][] = [
    {},
    onNodes('a'),
    onNodes('b', 'c'),
    onNodes('nowhere'),
    { nodeAffinity: { required: { nodeSelectorTerms: [term('zone', 'cellar')] } } },
    { nodeAffinity: { required: { nodeSelectorTerms: [term('zone', 'attic'), term('zone', 'cellar')] } } },
    {
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'Exists' }] }] } },
    },
    { nodeAffinity: { required: { nodeSelectorTerms: [term('missing', '')] } } },
  ]
  for (let round = 0; round < 50; round++) {
    const volumes = Array.from({ length: below(20) }, (_, number) => {
      const capacity = { storage: `${1 + below(30)}Gi` }
      return volume(`disk-${number}`, { spec: { capacity, ...places[below(places.length)] } })
    })
    const known = aClusterWithVolumes({ nodes, volumes })
    const { free } = finished(candidatesFor(claim(), known.volumes))
    const taken = new Set(volumes.filter(() => random() < 0.2))
    for (const usage of known.from(0)) {
      const sizes = volumes.filter((one) => !taken.has(one) && isReachable(one, usage)).map(sizeOf)
      const found = free.smallestOn(usage, taken)
      t.equal(found && sizeOf(found), sizes.length === 0 ? undefined : Math.min(...sizes))
      t.ok(found === undefined || (!taken.has(found) && isReachable(found, usage)))
    }
  }
})

function sizeOf({ spec }: KnownVolume): number {
  return Number.parseInt(String(spec?.capacity?.['storage']), 10)
}
