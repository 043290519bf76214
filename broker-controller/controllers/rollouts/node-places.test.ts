import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { freePlaces, internalAddressesOf, linkAndZoneOf } from './node-places.ts'

test('a node is on the link of its label, or in the segment of its address', async (t) => {
  t.same(linkAndZoneOf(aNode({ address: '192.0.2.11' })), { link: '192.0.2.0/24', zone: '' })
  const labels = { 'bramble.dev/link': 'ap-attic', 'topology.kubernetes.io/zone': 'attic' }
  t.same(linkAndZoneOf(aNode({ labels })), { link: 'ap-attic', zone: 'attic' })
  t.same(linkAndZoneOf(aNode({ annotations: { 'bramble.dev/segment': 'cellar' } })).link, 'cellar')
  t.same(linkAndZoneOf({ ...aNode(), status: {} }), { link: '', zone: '' })
  t.same(internalAddressesOf(aNode({ address: '192.0.2.11' }).status), ['192.0.2.11'])
})

test('a link, a zone and the fleet have so many places; where nothing is named there is no limit', async (t) => {
  const [attic, cellar, none] = [
    { link: 'ap', zone: 'attic' },
    { link: 'switch', zone: 'cellar' },
    { link: '', zone: '' },
  ]
  const free = freePlaces({ perLink: 1, perZone: 2, atOnce: 3 })
  t.ok(free.has(attic))
  free.take(attic)
  t.notOk(free.has(attic), 'the link is full')
  t.ok(free.has({ link: 'other', zone: 'attic' }))
  free.take({ link: 'other', zone: 'attic' })
  t.notOk(free.has({ link: 'third', zone: 'attic' }), 'the zone is full')
  t.ok(free.has(none))
  free.take(none)
  t.notOk(free.has(cellar), 'the fleet is full')
  const open = freePlaces({ perLink: 1 })
  for (let at = 0; at < 5; at++) open.take(none)
  t.ok(open.has(none))
})
