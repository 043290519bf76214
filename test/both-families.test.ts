/** A fleet that gets IPv6 and loses it again: the controller as a user starts it, and kubectl. */
import { join } from 'node:path'
import { test } from 'tap'
import { whyNoKubectl } from '../broker-controller/testing/kubectl.ts'
import { type Controller, startController, temporaryFolder } from './support/fleet.ts'
import { eventually } from './support/wait.ts'

const single = { podNetwork: 'routed', clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }
const dual = {
  podNetwork: 'routed',
  clusterCIDR: '10.244.0.0/16,fd00:10:244::/56',
  serviceCIDR: '10.96.0.0/12,fd00:10:96::/112',
}

async function podCIDRs(controller: Controller, node: string, count: number): Promise<readonly string[]> {
  const read = async () => {
    const text = await controller.kubectl('get', 'node', node, '-o', 'jsonpath={.spec.podCIDRs}')
    return text === '' ? [] : (JSON.parse(text) as readonly string[])
  }
  await eventually(`${count} ranges`, async () => (await read()).length === count)
  return await read()
}

const clusterIPs = async (controller: Controller, service: string) =>
  JSON.parse(await controller.kubectl('get', 'service', service, '-o', 'jsonpath={.spec.clusterIPs}')) as string[]

const aNode = (name: string) => JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name } })
const prefer = (policy: string) => ['-p', JSON.stringify({ spec: { ipFamilyPolicy: policy } })]

test('a fleet gets IPv6 and loses it again', { skip: whyNoKubectl(), timeout: 300_000 }, async (t) => {
  const dataDir = join(await temporaryFolder(t), 'controller')
  const restarted = async (controller: Controller | undefined, settings: Readonly<Record<string, unknown>>) => {
    await controller?.program.stop()
    return await startController(t, { dataDir, settings })
  }

  const before = await restarted(undefined, single)
  await before.kubectlWith(aNode('pi-1'), 'create', '-f', '-')
  const [range = ''] = await podCIDRs(before, 'pi-1', 1)
  await before.kubectl('create', 'service', 'clusterip', 'web', '--tcp=80')
  const [address = ''] = await clusterIPs(before, 'web')
  const refused = await before.tryKubectl('patch', 'service', 'web', ...prefer('RequireDualStack'))
  t.match(refused, { code: 1, stderr: 'this cluster is not configured for dual-stack services' })

  const both = await restarted(before, dual)
  t.same(await podCIDRs(both, 'pi-1', 2), [range, 'fd00:10:244::/64'], 'the node keeps its range and gets another one')
  await both.kubectlWith(aNode('pi-2'), 'create', '-f', '-')
  t.match(await podCIDRs(both, 'pi-2', 2), [/^10\.244\.\d+\.0\/24$/, 'fd00:10:244:1::/64'])
  const change = JSON.stringify({ spec: { podCIDRs: [range] } })
  t.match(await both.tryKubectl('patch', 'node', 'pi-1', '--type=merge', '-p', change), {
    code: 1,
    stderr: 'node updates may not change podCIDR',
  })
  t.same(await clusterIPs(both, 'web'), [address])
  await both.kubectl('patch', 'service', 'web', ...prefer('PreferDualStack'))
  const addresses = await clusterIPs(both, 'web')
  t.match(addresses, [address, /^fd00:10:96::[0-9a-f]+$/])
  t.match(await both.kubectl('get', 'service', 'web'), new RegExp(`web +ClusterIP +${address.replaceAll('.', '\\.')} `))
  t.match(await both.kubectl('describe', 'service', 'web'), new RegExp(`IPs: +${addresses.join()}\n`))
  t.equal((await clusterIPs(both, 'kubernetes')).length, 1)

  const after = await restarted(both, single)
  t.same(await podCIDRs(after, 'pi-1', 2), [range, 'fd00:10:244::/64'], 'for the next time')
  t.same(await clusterIPs(after, 'web'), addresses)
  await after.kubectl('label', 'service', 'web', 'tier=front')
  await after.kubectl('patch', 'service', 'web', ...prefer('SingleStack'))
  t.same(await clusterIPs(after, 'web'), [address])

  const again = await restarted(after, dual)
  t.same(await podCIDRs(again, 'pi-1', 2), [range, 'fd00:10:244::/64'])
  await again.kubectl('create', 'service', 'clusterip', 'next', '--tcp=80')
  await again.kubectl('patch', 'service', 'next', ...prefer('RequireDualStack'))
  t.match(await clusterIPs(again, 'next'), [/^10\./, /^fd00:10:96::/])
})
