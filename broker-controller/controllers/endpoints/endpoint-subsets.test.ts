import { test } from 'tap'
import { packedSubsets, truncatedSubsets } from './endpoint-subsets.ts'

const [one, two] = [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }]
const [http, https] = [
  { name: 'http', port: 80, protocol: 'TCP' },
  { name: 'https', port: 443, protocol: 'TCP' },
]

test('addresses with the same ports stand together', async (t) => {
  t.same(
    await packedSubsets([
      { addresses: [two], ports: [http] },
      { addresses: [one], ports: [https] },
      { addresses: [two], ports: [https] },
      { addresses: [one], ports: [http] },
    ]),
    [{ addresses: [one, two], ports: [http, https] }],
  )
})

test('ports with other addresses stand apart, and so does what is not ready on one of them', async (t) => {
  t.same(
    await packedSubsets([
      { addresses: [one, two], ports: [http] },
      { addresses: [one], notReadyAddresses: [two], ports: [https] },
    ]),
    [
      { addresses: [one, two], ports: [http] },
      { addresses: [one], notReadyAddresses: [two], ports: [https] },
    ],
  )
})

test('an address that is ready and not ready is not ready, in either order', async (t) => {
  const both = [
    { addresses: [one], ports: [http] },
    { notReadyAddresses: [one], ports: [http] },
  ]
  t.same(await packedSubsets(both), [{ notReadyAddresses: [one], ports: [http] }])
  t.same(await packedSubsets([...both].reverse()), [{ notReadyAddresses: [one], ports: [http] }])
})

test('addresses without ports stay without ports', async (t) => {
  t.same(await packedSubsets([{ addresses: [one] }, { notReadyAddresses: [two] }]), [
    { addresses: [one], notReadyAddresses: [two] },
  ])
})

test('one address of two pods is two addresses', async (t) => {
  const of = (uid: string) => ({ ...one, targetRef: { kind: 'Pod', uid } })
  t.same(await packedSubsets([{ addresses: [of('b'), of('a')], ports: [http] }]), [
    { addresses: [of('a'), of('b')], ports: [http] },
  ])
})

const many = (count: number) => Array.from({ length: count }, (_, i) => ({ ip: `10.1.${i >> 8}.${i & 255}` }))
const sizes = (...subsets: Parameters<typeof truncatedSubsets>[0]) =>
  truncatedSubsets(subsets)?.map(({ addresses = [], notReadyAddresses = [] }) => [
    addresses.length,
    notReadyAddresses.length,
  ])

test('up to 1,000 addresses are kept', async (t) => {
  t.equal(sizes({ addresses: many(990), notReadyAddresses: many(10) }), undefined)
})

test('of more, each subset keeps its share of what is ready, then of what is not', async (t) => {
  t.same(sizes({ addresses: many(1500) }, { addresses: many(500), notReadyAddresses: many(5) }), [
    [750, 0],
    [250, 0],
  ])
  t.same(sizes({ addresses: many(900), notReadyAddresses: many(100) }, { notReadyAddresses: many(100) }), [
    [900, 50],
    [0, 50],
  ])
  t.same(
    sizes({ addresses: many(1), ports: [http] }, { addresses: many(1000) }),
    [
      [1, 0],
      [999, 0],
    ],
    'a share is rounded up while there is space',
  )
})

test('a subset of which nothing is kept is left out', async (t) => {
  t.same(sizes({ addresses: many(1000) }, { addresses: many(1), ports: [http] }, { notReadyAddresses: many(9) }), [
    [1000, 0],
  ])
})

test('many addresses with many ports cost their sum, not their product', async (t) => {
  const ports = Array.from({ length: 4_000 }, (_, at) => ({ name: `p${at}`, port: 1 + at }))
  const packed = await packedSubsets([{ addresses: many(4_000), ports }])
  t.same(
    packed.map((subset) => [subset.addresses?.length, subset.ports?.length]),
    [[4_000, 4_000]],
  )
})

test('an address that is ready for some ports only stands apart for each of them', async (t) => {
  const packed = await packedSubsets([
    { addresses: [one, two], ports: [http, https] },
    { notReadyAddresses: [two], ports: [https] },
  ])
  t.same(packed, [
    { addresses: [one, two], ports: [http] },
    { addresses: [one], notReadyAddresses: [two], ports: [https] },
  ])
})
