import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { peerPod } from './policy-peers.ts'

test('a pod is a peer with its own addresses, and not with one of the loopback, the link or a group', (t) => {
  t.match(peerPod(aPod({ status: { podIP: '10.244.1.7' } })), { ip: '10.244.1.7' })
  for (const ip of ['127.0.0.1', '169.254.169.254', '224.0.0.1']) {
    t.equal(peerPod(aPod({ status: { podIP: ip, podIPs: [{ ip }] } })), undefined, ip)
  }
  const both = aPod({ status: { podIPs: [{ ip: '10.244.1.7' }, { ip: 'fe80::7' }] } })
  t.equal(peerPod(both, true)?.ipv6, undefined)
  t.end()
})
