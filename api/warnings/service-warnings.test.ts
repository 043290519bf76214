import { test } from 'tap'
import type { ServiceSpec } from '../network/service.ts'
import { serviceWarnings } from './service-warnings.ts'

const warned = (spec: ServiceSpec, annotations?: { readonly [key: string]: string }) =>
  serviceWarnings({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 's', ...(annotations && { annotations }) },
    spec,
  })

test('a Service that is meant as it is has no warnings', async (t) => {
  t.same(
    warned({ type: 'ClusterIP', clusterIP: 'None', clusterIPs: ['None'], externalIPs: ['10.0.0.1', 'fd00::1'] }),
    [],
  )
  t.same(warned({ type: 'ExternalName', externalName: 'a.example' }), [])
})

test('addresses that are not in the form of RFC 5952', async (t) => {
  const long = '"FD00:0::1" is not in RFC 5952 canonical format ("fd00::1"), which may cause controller apply-loops'
  t.same(
    warned({
      clusterIP: 'FD00:0::1',
      clusterIPs: ['FD00:0::1'],
      externalIPs: ['10.0.0.1', 'FD00:0::1'],
      loadBalancerIP: 'FD00:0::1',
      loadBalancerSourceRanges: ['10.0.0.0/8', 'fd00::/8', 'FD00::/8'],
    }),
    [
      `spec.clusterIPs[0]: IPv6 address ${long}`,
      `spec.externalIPs[1]: IPv6 address ${long}`,
      `spec.loadBalancerIP: IPv6 address ${long}`,
      'spec.loadBalancerSourceRanges[2]: IPv6 prefix "FD00::/8" is not in RFC 5952 canonical format ("fd00::/8"), which may cause ' +
        'controller apply-loops',
    ],
  )
})

test('fields and annotations that are ignored', async (t) => {
  t.same(warned({ type: 'ExternalName', externalIPs: ['10.0.0.1'] }), [
    'spec.externalIPs is ignored when spec.type is "ExternalName"',
  ])
  t.same(warned({ type: 'ClusterIP', externalName: 'x' }), [
    'spec.externalName is ignored when spec.type is not "ExternalName"',
  ])
  t.same(warned({}, { 'service.kubernetes.io/topology-aware-hints': 'auto' }), [
    'annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead',
  ])
})
