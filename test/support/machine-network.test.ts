import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { machineNetwork } from './machine-network.ts'
import { whyNoRules } from './own-space.ts'
import { plugged } from './routed-machines.ts'

test('machines that come and go leave the bridge its address', {
  skip: whyNoRules(),
}, async (t) => {
  const network = await machineNetwork(t)
  const addressOfBridge = () => readFile(`/sys/class/net/${network.bridge}/address`, 'utf8')
  const before = await addressOfBridge()
  const machines = [await plugged(t, network), await plugged(t, network), await plugged(t, network)]
  for (const { run } of machines) t.match(await run('ping', '-c', '1', '-W', '60', network.hostAddress), /1 received/)
  t.equal(await addressOfBridge(), before)
})
