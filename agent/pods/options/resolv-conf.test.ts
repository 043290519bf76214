import { test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { Resolver } from './pod-dns.ts'
import { hasResolvConf, isLocal, resolvConfMount, resolvConfText } from './resolv-conf.ts'

const host = { servers: ['192.0.2.1', '192.0.2.2'], searches: ['lan', 'example.com'], options: ['edns0', 'rotate'] }
const local = { servers: ['127.0.0.53'], searches: ['lan'], options: [] }
const bare = { servers: [], searches: [], options: [] }

const textOf = (pod: Pod, machine: Resolver, clusterDomain?: string) => resolvConfText(pod, machine, clusterDomain)

test('the settings of the machine, unless the pod has its own', async (t) => {
  t.equal(
    textOf(aPod(), host),
    'search lan example.com\nnameserver 192.0.2.1\nnameserver 192.0.2.2\noptions edns0 rotate\n',
  )
  const dnsConfig = { nameservers: ['192.0.2.9'] }
  t.equal(textOf(aPod({ spec: { dnsPolicy: 'None', dnsConfig } }), host), 'nameserver 192.0.2.9\n')
  t.match(textOf(aPod({ spec: { dnsConfig } }), host), /nameserver 192\.0\.2\.2\nnameserver 192\.0\.2\.9\n/)
})

test("the engine's file is kept where the machine has local servers only", async (t) => {
  for (const servers of [local, bare]) {
    t.equal(textOf(aPod(), servers), undefined)
    t.equal(textOf(aPod({ spec: { dnsConfig: { searches: ['x'] } } }), servers), undefined)
  }
  const mixed = { ...local, servers: ['127.0.0.53', '192.0.2.1'] }
  t.equal(textOf(aPod(), mixed), 'search lan\nnameserver 127.0.0.53\nnameserver 192.0.2.1\n')
  const own = { dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } }
  t.equal(textOf(aPod({ spec: own }), host), 'nameserver 127.0.0.1\n', 'a sidecar may be the server')
})

test("on the machine's network only settings of its own give a pod a file", async (t) => {
  t.equal(textOf(aPod({ spec: { hostNetwork: true } }), host), undefined)
  const spec = { hostNetwork: true, dnsConfig: { searches: ['x'] } }
  t.equal(textOf(aPod({ spec }), local), 'search lan x\nnameserver 127.0.0.53\n')
})

test('what a container mounts there itself stays', async (t) => {
  t.equal(hasResolvConf([{ ...resolvConfMount('/f'), target: '/etc/hosts' }]), true)
  t.equal(hasResolvConf([resolvConfMount('/f')]), false)
  t.equal(hasResolvConf([{ ...resolvConfMount('/f'), target: '/data' }, resolvConfMount('/f')]), false)
  t.equal(resolvConfMount('/f').readOnly, false)
})

test('a loopback address is local', async (t) => {
  t.same(['127.0.0.53', '127.1.2.3', '::1', '192.0.2.1', '1.127.0.1', '2001:db8::1', '::12'].filter(isLocal), [
    '127.0.0.53',
    '127.1.2.3',
    '::1',
  ])
})

test('the name server of the node is in the file also where the machine has local servers only', async (t) => {
  const text =
    'search default.svc.fleet.example svc.fleet.example fleet.example lan\nnameserver 169.254.20.10\noptions ndots:5\n'
  t.equal(textOf(aPod(), local, 'fleet.example'), text)
  t.equal(
    textOf(aPod({ spec: { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' } }), local, 'fleet.example'),
    text,
  )
  t.equal(textOf(aPod({ spec: { hostNetwork: true } }), host, 'fleet.example'), undefined)
})
