import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { hasHostsFile, hostsFileText, hostsMount } from './hosts-file.ts'

test('the hosts file of a pod has its name, and a line for each alias with all its names', async (t) => {
  const plain = hostsFileText(aPod({ name: 'web' }), { ip: '10.244.0.7' }, undefined, undefined)
  t.match(plain, /^# Kubernetes-managed hosts file\.\n127\.0\.0\.1\tlocalhost\n::1\tlocalhost /)
  t.match(plain, /\n10\.244\.0\.7\tweb\n$/)
  const spec = {
    hostname: 'web',
    subdomain: 'shop',
    hostAliases: [
      { ip: '192.0.2.7', hostnames: ['camera.lan', 'camera'] },
      { ip: '192.0.2.8', hostnames: ['door'] },
    ],
  }
  t.ok(
    hostsFileText(aPod({ name: 'x', spec }), { ip: '10.244.0.7' }, 'other', undefined)?.endsWith(
      '\n10.244.0.7\tweb.shop.default.svc.cluster.local\tweb\n\n# Entries added by HostAliases.\n192.0.2.7\tcamera.lan\tcamera\n192.0.2.8\tdoor\n',
    ),
  )
})

test('a pod whose host name is its full name is found by its short name, too', async (t) => {
  const pod = aPod({ name: 'web', spec: { subdomain: 'shop', setHostnameAsFQDN: true } })
  t.match(
    hostsFileText(pod, { ip: '10.244.0.7' }, undefined, undefined),
    /\n10\.244\.0\.7\tweb\.shop\.default\.svc\.cluster\.local\tweb\n$/,
  )
})

test('each address of a pod has a line with its names', async (t) => {
  const both = { ip: '10.244.0.7', ipv6: 'fd00:10:244::7' }
  t.match(
    hostsFileText(aPod({ name: 'web' }), both, undefined, undefined),
    /\n10\.244\.0\.7\tweb\nfd00:10:244::7\tweb\n$/,
  )
})

test('on the machine’s network, the lines of the machine come before those of the aliases', async (t) => {
  const spec = { hostNetwork: true, hostAliases: [{ ip: '192.0.2.7', hostnames: ['camera.lan', 'camera'] }] }
  t.equal(
    hostsFileText(aPod({ spec }), { ip: '192.0.2.1' }, '127.0.0.1 localhost', undefined),
    '# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n# Entries added by HostAliases.\n192.0.2.7\tcamera.lan\tcamera\n',
  )
  t.equal(
    hostsFileText(aPod({ spec: { hostNetwork: true } }), { ip: undefined }, '', undefined),
    '# Kubernetes-managed hosts file (host network).\n',
  )
})

test('without an address of the pod, or without lines of the machine, the container has the engine’s file', async (t) => {
  t.equal(hostsFileText(aPod(), { ip: undefined }, 'lines', undefined), undefined)
  t.equal(hostsFileText(aPod({ spec: { hostNetwork: true } }), { ip: '192.0.2.1' }, undefined, undefined), undefined)
})

test('a container with something of its own at that path has no such file', async (t) => {
  t.equal(hasHostsFile([]), true)
  t.equal(hasHostsFile([hostsMount('/own')]), false)
  t.equal(hasHostsFile([{ ...hostsMount('/own'), target: '/etc/other' }]), true)
  t.equal(hostsMount('/own').readOnly, false, 'an image may add names when it starts')
})
