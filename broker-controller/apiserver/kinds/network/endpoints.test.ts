import { test } from 'tap'
import type { EndpointSubset, Endpoints } from '../../../../api/network/endpoints.ts'
import { kinds } from '../../../assembly/control-plane.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { tableOf } from '../../handlers/tables.ts'

const metadata = { name: 'web', namespace: 'default' }
const endpoints = (subset: EndpointSubset) => ({
  apiVersion: 'v1' as const,
  kind: 'Endpoints' as const,
  metadata,
  subsets: [subset],
})

test('Endpoints have addresses that other machines reach, and ports', async (t) => {
  const addresses = [{ ip: '10.0.0.1' }]
  t.match(create('endpoints', endpoints({ addresses, ports: [{ port: 80 }] })), {
    subsets: [{ ports: [{ port: 80, protocol: 'TCP' }] }],
  })
  const wrong = (subset: EndpointSubset) => causes(() => create('endpoints', endpoints(subset)))
  t.same(wrong({}), ['subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`'])
  t.same(wrong({ addresses: [{ ip: '169.254.0.1' }] }), [
    'subsets[0].addresses[0].ip: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
  ])
  t.same(wrong({ notReadyAddresses: [{ ip: 'web' }] }), [
    'subsets[0].notReadyAddresses[0].ip: Invalid value: "web": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
  ])
  t.same(wrong({ addresses, ports: [{ port: 80 }, { name: 'b', port: 0 }] }), [
    'subsets[0].ports[0].name: Required value',
    'subsets[0].ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive',
  ])
})

test('Endpoints without ports or subsets are stored as they are', async (t) => {
  const addresses = [{ ip: '10.0.0.1' }]
  t.same((create('endpoints', endpoints({ addresses })) as Endpoints).subsets, [{ addresses }])
  const { subsets: _, ...none } = endpoints({ addresses })
  t.notOk('subsets' in create('endpoints', none))
})

test('a change of Endpoints is checked where it changes the subsets', async (t) => {
  const addresses = [{ ip: '10.0.0.1' }]
  const stored = endpoints({ addresses })
  // Written before a check existed.
  const old = endpoints({ addresses: [{ ip: '127.0.0.1' }] })
  const { subsets: _, ...none } = old
  const labelled = <T extends Endpoints>(one: T) => ({ ...one, metadata: { ...metadata, labels: { app: 'web' } } })
  t.same(
    causes(() => update('endpoints', old, labelled(old))),
    [],
  )
  t.same(
    causes(() => update('endpoints', none, labelled(none))),
    [],
  )
  t.same(
    causes(() => update('endpoints', none, stored)),
    [],
  )
  const wrong = [
    'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
  ]
  t.same(
    causes(() => update('endpoints', stored, old)),
    wrong,
  )
  t.same(
    causes(() => update('endpoints', none, old)),
    wrong,
  )
})

test('the table of Endpoints shows their addresses with each port, or alone', async (t) => {
  const options = { nowMs: 60_000, listMeta: {}, includeObject: 'None' } as const
  const shown = (subsets?: Endpoints['subsets']) => {
    const born = { ...metadata, creationTimestamp: '1970-01-01T00:00:00Z' }
    const object: Endpoints = { apiVersion: 'v1', kind: 'Endpoints', metadata: born, ...(subsets && { subsets }) }
    return tableOf(kinds.endpoints, [object], options).rows[0]?.cells
  }
  const addresses = [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }]
  t.same(shown([{ addresses, ports: [{ port: 80 }] }]), ['web', '10.0.0.1:80,10.0.0.2:80', '60s'])
  t.same(shown([{ addresses }]), ['web', '10.0.0.1,10.0.0.2', '60s'])
  t.same(shown([{ notReadyAddresses: addresses, ports: [{ port: 80 }] }]), ['web', '<none>', '60s'])
  t.same(shown([{ notReadyAddresses: addresses }]), ['web', '<none>', '60s'])
  t.same(shown([]), ['web', '<none>', '60s'])
  t.same(shown(), ['web', '<none>', '60s'])
})
