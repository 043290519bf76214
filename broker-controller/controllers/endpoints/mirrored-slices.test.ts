import { test } from 'tap'
import type { ObjectMeta } from '../../../api/meta.ts'
import type { EndpointSubset } from '../../../api/network/endpoints.ts'
import type { StoredObject } from '../../store/store.ts'
import { isMirrored, mirroring } from './mirrored-slices.ts'
import type { StoredSlice } from './slice-packing.ts'

const stamps = { namespace: 'default', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' }
const endpoints = (subsets: readonly EndpointSubset[], metadata: ObjectMeta = {}): StoredObject<'endpoints'> => ({
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { ...stamps, ...metadata, name: 'web', uid: metadata.uid ?? 'e' },
  subsets,
})
const changesOf = async (...args: Parameters<typeof mirroring>) => (await mirroring(...args)).changes
/** The slices as they are stored after these changes. */
const written = async (...args: Parameters<typeof mirroring>): Promise<readonly StoredSlice[]> => {
  const { create, update } = await changesOf(...args)
  return [...create, ...update].map((slice, index) => ({
    ...slice,
    metadata: { ...stamps, ...slice.metadata, name: slice.metadata.name ?? `s${index}`, uid: `s${index}` },
  }))
}
const [one, two] = [{ ip: '192.168.0.1' }, { ip: '192.168.0.2' }]
const ports = [{ name: 'http', port: 80, protocol: 'TCP' }]
const subset = { addresses: [one], notReadyAddresses: [two], ports }

test('each family of addresses and each set of ports has a slice', async (t) => {
  const v6 = { ip: 'fd00::1' }
  const slices = await written(endpoints([subset, { addresses: [one, v6], ports: [{ port: 443 }] }]), [])
  t.same(slices.map(({ addressType, ports: own }) => [addressType, own?.[0]?.port]).sort(), [
    ['IPv4', 443],
    ['IPv4', 80],
    ['IPv6', 443],
  ])
  t.match(
    slices.find(({ ports: own }) => own?.[0]?.port === 80),
    {
      endpoints: [
        { addresses: ['192.168.0.1'], conditions: { ready: true } },
        { addresses: ['192.168.0.2'], conditions: { ready: false } },
      ],
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    },
  )
})

test('slices that are as they should be are not written', async (t) => {
  const all = endpoints([subset], { labels: { a: 'b' }, annotations: { c: 'd' } })
  const slices = await written(all, [])
  t.same(await changesOf(all, slices), { create: [], update: [], remove: [] })
  const own = { 'endpoints.kubernetes.io/last-change-trigger-time': 'now' }
  const timed = endpoints([subset], { labels: { a: 'b' }, annotations: { c: 'd', ...own } })
  t.same((await changesOf(timed, slices)).update, [], 'the time of a change is not mirrored')
})

test('another address, label, annotation or owner writes the slice again', async (t) => {
  const slices = await written(endpoints([subset]), [])
  const changed = async (...args: Parameters<typeof endpoints>) => {
    const { create, update, remove } = await changesOf(endpoints(...args), slices)
    return [create.length, update.length, remove.length]
  }
  t.same(await changed([{ addresses: [one, two], ports }]), [0, 1, 0])
  t.same(await changed([{ addresses: [one], ports }]), [0, 1, 0])
  t.same(await changed([{ addresses: [{ ip: '192.168.0.9' }], ports }]), [0, 1, 0])
  t.same(await changed([subset], { labels: { a: 'b' } }), [0, 1, 0])
  t.same(await changed([subset], { annotations: { a: 'b' } }), [0, 1, 0])
  t.same(await changed([subset], { uid: 'other' }), [0, 1, 0])
  t.same(await changed([{ ...subset, ports: [{ port: 443 }] }]), [0, 1, 0], 'a slice for other ports takes its place')
  t.same(await changed([]), [0, 0, 1])
})

test('a name is not an address, and addresses beyond 1,000 in a subset are counted', async (t) => {
  const many = Array.from({ length: 1002 }, (_, i) => ({ ip: `10.1.${i >> 8}.${i & 255}` }))
  const { skipped, changes } = await mirroring(endpoints([{ addresses: [...many, { ip: 'host' }], ports }]), [])
  t.equal(skipped, 2)
  t.equal(changes.create[0]?.endpoints?.length, 1000)
})

test('Endpoints that are being deleted get no new slice', async (t) => {
  t.same((await changesOf(endpoints([subset], { deletionTimestamp: '2026-01-01T00:00:00Z' }), [])).create, [])
})

test('a label or the lock of a leader keeps Endpoints from being mirrored', async (t) => {
  t.ok(isMirrored(endpoints([])))
  t.ok(isMirrored(endpoints([], { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'false' } })))
  t.notOk(isMirrored(endpoints([], { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } })))
  t.notOk(isMirrored(endpoints([], { annotations: { 'control-plane.alpha.kubernetes.io/leader': '' } })))
})
