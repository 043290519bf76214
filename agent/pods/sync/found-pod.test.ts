import { test } from 'tap'
import { aContainer } from '../../testing/builders.ts'
import { foundPod, networkSandbox } from './found-pod.ts'

const sandbox = { id: 's', pid: 7, mac: '02:42:0a:f4:01:05' }
const found = (kind: 'sandbox' | 'container', more: object) =>
  aContainer({ id: 's', identity: { containerName: kind === 'sandbox' ? '' : 'main' }, ...more })

test('the sandbox of a network is one that runs, with an address of its own', async (t) => {
  const whole = { ip: '10.244.0.5', pid: 7, mac: sandbox.mac }
  t.same(networkSandbox([found('container', { ip: undefined }), found('sandbox', whole)]), sandbox)
  for (const missing of ['ip', 'pid', 'mac'])
    t.equal(networkSandbox([found('sandbox', { ...whole, [missing]: undefined })]), undefined, missing)
  t.equal(networkSandbox([found('container', whole)]), undefined)
  t.equal(networkSandbox([]), undefined)
})

test('a pod without an address has no isolation of its own', async (t) => {
  const named = { pod: undefined, path: '/kubepods/u' }
  const of = (addresses: Partial<Parameters<typeof foundPod>[1]>) =>
    foundPod(named, { ip: undefined, ipv6: undefined, sandbox: undefined, ...addresses })
  t.equal(of({ ipv6: 'fd00::5' }), undefined)
  t.same(of({ ip: '10.244.0.5' }), { ...named, ip: '10.244.0.5' })
  t.same(of({ ip: '10.244.0.5', ipv6: 'fd00::5', sandbox }), {
    ...named,
    ...{ ip: '10.244.0.5', ipv6: 'fd00::5', sandbox },
  })
})
