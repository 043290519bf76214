import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { hasHostsFile, hostsFileText, hostsMount } from './hosts-file.ts'

test('the hosts file of a pod has its name, and a line for each alias with all its names', async (t) => {
  const plain = hostsFileText(aPod({ name: 'web' }), '10.244.0.7')
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
    hostsFileText(aPod({ name: 'x', spec }), '10.244.0.7').endsWith(
      '\n10.244.0.7\tweb.shop.default.svc.cluster.local\tweb\n\n# Entries added by HostAliases.\n192.0.2.7\tcamera.lan\tcamera\n192.0.2.8\tdoor\n',
    ),
  )
})

test('a container on the machine’s network, or with something of its own at that path, has no such file', async (t) => {
  t.equal(hasHostsFile(aPod(), []), true)
  t.equal(hasHostsFile(aPod({ spec: { hostNetwork: true } }), []), false)
  t.equal(hasHostsFile(aPod(), [hostsMount('/own')]), false)
})
