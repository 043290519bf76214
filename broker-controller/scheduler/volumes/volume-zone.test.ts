import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { aStoredVolume } from '../../testing/volume-objects.ts'
import { nodeInfo } from '../node-usage.ts'
import { zoneRefusal, zoneRulesOf } from './volume-zone.ts'

type Labels = { readonly [label: string]: string }

const zone = 'topology.kubernetes.io/zone'
const region = 'topology.kubernetes.io/region'
const oldZone = 'failure-domain.beta.kubernetes.io/zone'
const oldRegion = 'failure-domain.beta.kubernetes.io/region'

test('a volume with labels of zones is for nodes with those, as the VolumeZone plugin compares them', async (t) => {
  const wrong = 'node(s) had no available volume zone'
  const cases: readonly (readonly [title: string, volume: Labels, node: Labels, refusal?: string])[] = [
    ['no labels', {}, { [zone]: 'attic' }],
    ['the same zone', { [zone]: 'attic' }, { [zone]: 'attic' }],
    ['another zone', { [zone]: 'attic' }, { [zone]: 'cellar' }, wrong],
    ['a node in no zone takes all', { [zone]: 'attic' }, {}],
    ['a node with only a region', { [zone]: 'attic' }, { [region]: 'home' }, wrong],
    ['both must be the same', { [zone]: 'attic', [region]: 'home' }, { [zone]: 'attic', [region]: 'shop' }, wrong],
    ['both are the same', { [zone]: 'attic', [region]: 'home' }, { [zone]: 'attic', [region]: 'home' }],
    ['old labels of both', { [oldZone]: 'attic' }, { [oldZone]: 'attic' }],
    ['an old label of the volume', { [oldZone]: 'attic' }, { [zone]: 'attic' }],
    ['an old label of the volume, elsewhere', { [oldZone]: 'attic' }, { [zone]: 'cellar' }, wrong],
    ['an old region of the volume', { [oldRegion]: 'home' }, { [region]: 'home' }],
    ['an old label of the node alone', { [zone]: 'attic' }, { [oldZone]: 'attic' }, wrong],
    ['the old label of the node comes first', { [oldZone]: 'a' }, { [oldZone]: 'b', [zone]: 'a' }, wrong],
    ['one of several zones', { [zone]: 'attic__cellar' }, { [zone]: 'cellar' }],
    ['none of several zones', { [zone]: 'attic__cellar' }, { [zone]: 'garage' }, wrong],
    ['spaces around a zone', { [zone]: 'attic __ cellar' }, { [zone]: 'cellar' }],
    ['a list that cannot be read is ignored', { [zone]: 'attic__' }, { [zone]: 'cellar' }],
    ['an empty label is ignored', { [zone]: '' }, { [zone]: 'cellar' }],
    ['other labels', { disk: 'ssd' }, { [zone]: 'cellar' }],
  ]
  for (const [title, labels, ofNode, refusal] of cases) {
    const rules = zoneRulesOf(aStoredVolume('disk', { metadata: { labels } }))
    t.equal(zoneRefusal(rules, nodeInfo(aNode({ labels: ofNode }))), refusal, title)
  }
})

test('the zones of all volumes of a pod must be those of the node', async (t) => {
  const rules = ['attic', 'cellar'].flatMap((name) =>
    zoneRulesOf(aStoredVolume(name, { metadata: { labels: { [zone]: name } } })),
  )
  for (const name of ['attic', 'cellar']) {
    t.ok(zoneRefusal(rules, nodeInfo(aNode({ labels: { [zone]: name } }))), name)
  }
})
