import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { ownSpace, whyNoRules } from '../../../test/support/own-space.ts'
import { eventually } from '../../../test/support/wait.ts'
import { balancerHost } from './balancer-host.ts'

const ip = 'fd00:9::240'
const device = 'eth0'

/** Two machines on one link, each with what it has of `ip`. */
async function twoMachines(t: Test) {
  const spaces = [await ownSpace(t), await ownSpace(t)] as const
  const [one, other] = spaces
  await one.run('ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', device, 'netns', other.name)
  for (const { run } of spaces) await run('ip', 'link', 'set', device, 'up')
  const machine = async ({ run, tool }: typeof one) => {
    const conf = { [device]: { ndisc_notify: '1\n' } }
    const root = testFolder(t, { proc: { net: { arp: '', if_inet6: '' }, sys: { net: { ipv6: { conf } } } } })
    await eventually('the link has an address', async () =>
      / fe80::\S+ (?!.*tentative)/.test(await run('ip', '-6', '-o', 'address', 'show', 'dev', device)),
    )
    const text = await run('ip', '-o', 'link', 'show', 'dev', device)
    return {
      host: balancerHost(root, await tool('ip')),
      mac: /ether (\S+)/.exec(text)?.[1],
      shown: () => run('ip', '-6', '-o', 'address', 'show', 'home'),
    }
  }
  return [await machine(one), await machine(other)] as const
}

test('of two machines that take an IPv6 address at one moment one keeps it', { skip: whyNoRules() }, async (t) => {
  const machines = await twoMachines(t)
  const take = () => Promise.all(machines.map(({ host }) => host.apply([{ step: 'take', ip }], device)))
  const [keeper, other] = await eventually('one has it, and the other one has not', async () => {
    const shown = await Promise.all(machines.map((one) => one.shown()))
    const [first, second] = shown.map((text) => text.includes(`${ip}/128`))
    // At first, and again where both have asked in the same instant: then both have lost it.
    if (!first && !second) await take()
    if (first === second || shown.join().includes('tentative')) return undefined
    return first ? machines : ([machines[1], machines[0]] as const)
  })
  await other.host.apply([{ step: 'probe', ip }], device)
  await eventually(
    'the other one finds it',
    async () => (await other.host.answers(device, true)).get(ip) === keeper.mac,
  )
  t.ok(keeper.mac)
})
