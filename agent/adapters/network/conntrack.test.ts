import { test } from 'tap'
import { ipv4Rules } from '../../../agent/network/rule-family.ts'
import { ownSpace, whyNoFlows } from '../../../test/support/own-space.ts'
import { conntrackFlows, flowIn } from './conntrack.ts'

const line =
  'udp      17 29 src=10.244.1.5 dst=10.96.0.10 sport=40000 dport=53 [UNREPLIED] src=10.244.1.2 dst=10.244.1.5 sport=5353 dport=40000 mark=0 use=1'
const flow = { address: '10.96.0.10', port: 53, endpoint: '10.244.1.2', endpointPort: 5353 }

test('flows are picked, each address and endpoint once, and a tool that is missing is named', {
  skip: whyNoFlows(),
}, async (t) => {
  const space = await ownSpace(t)
  const entry = (port: number, to: string) => {
    const from = ['-s', '10.244.1.5', '-d', '10.96.0.10', '--sport', String(port), '--dport', '53']
    const reply = ['-r', to, '-q', '10.244.1.5', '--reply-port-src', '5353', '--reply-port-dst', String(port)]
    return space.run('conntrack', '-I', '-p', 'udp', '-t', '60', ...from, ...reply)
  }
  for (const port of [40_000, 40_001, 40_002]) await entry(port, '10.244.1.2')
  await entry(40_003, '10.244.1.3')
  const flows = conntrackFlows(ipv4Rules, await space.tool('conntrack'))
  const gone = (await flows.list(() => true, 10)).filter(({ endpoint }) => endpoint === '10.244.1.2')
  t.same(gone, [flow])
  for (const one of gone) await flows.remove(one)
  t.same(await flows.list(() => true, 10), [{ ...flow, endpoint: '10.244.1.3' }])
  t.same(await flows.list(() => true, 0), [])
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  await t.rejects(
    conntrackFlows(ipv4Rules, '/nonexistent/conntrack').list(() => true, 1),
    {
      message: '/nonexistent/conntrack is not installed',
    },
  )
  t.equal(timers(), before, 'and nothing is waited for')
})

test('a flow is read from the line that conntrack prints', async (t) => {
  t.same(flowIn(line), flow)
  t.same(flowIn(line.replace(' [UNREPLIED]', '').replace('mark=0', '[ASSURED] mark=0')), flow)
  for (const other of ['', 'conntrack v1.4.7 (conntrack-tools): 2 flow entries have been shown.', line.slice(0, 80)]) {
    t.equal(flowIn(other), undefined)
  }
})
