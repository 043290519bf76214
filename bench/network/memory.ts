/** Measures what Services cost the agent in memory. `--help` prints the usage. */
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { agentLauncher } from '../../test/support/fleet.ts'
import type { Program } from '../../test/support/program.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'
import { type ServicesMachine, servicesMachine } from './many-services.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/network/memory.js',
  text: `Measures what Services of three endpoints each cost an agent in memory: without Services, with all of them, after changes of their endpoints,
and after a start with the checkpoint of all of them; and how long after its start their rules are in the kernel. The machine is a network namespace
with a dockerd. Prints two tables. Needs root, the parts of the tests and bundles (npm run build).`,
  options: {
    services: { value: 'N', help: 'Services', range: [1, 10_000], default: '1000' },
    changes: { value: 'N', help: 'changes of endpoints', range: [0, 100_000], default: '200' },
    settle: { value: 'S', help: 'seconds before the memory is read', range: [0, 100_000], default: '45' },
    launcher: {
      value: 'FILE',
      help: 'bramble-agent of another version',
      default: agentLauncher,
      defaultText: 'that of this tree',
    },
  },
})
const count = values.services
const changedRange = 249

const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }
const rows: string[] = []
const starts: string[] = []

try {
  const machine = await servicesMachine(ending, values.launcher)
  let agent = machine.startAgent()
  await machine.controller.nodesReady('pi-1')
  await measure('without Services', agent)
  await machine.createServices(count)
  await measure(`${count} Services, as they were created`, agent)
  for (let change = 0; change < values.changes; change++) {
    await machine.changeEndpoint((change * 37) % count, changedRange)
    await delay(50)
  }
  await measure(`after ${values.changes} changes`, agent)
  await agent.stop()
  agent = await started('with a controller, the rules are in the kernel', machine)
  await measure('an agent that starts with them', agent)
  await machine.controller.program.stop()
  await agent.stop()
  agent = await started('without a controller, the rules are in the kernel', machine)
  await measure('the same without a controller', agent)
  await agent.stop()
  await machine.run('nft', 'delete', 'table', 'ip', 'bramble')
  agent = await started('without a controller and without rules, as after a reboot', machine)
  console.log('| agent | resident | anonymous | peak |\n|---|---|---|---|')
  console.log(rows.join('\n'))
  console.log('\n| start | its log begins | rules applied | Services |\n|---|---|---|---|')
  console.log(starts.join('\n'))
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end()
}

/**
 * From the start of the process until the first line of its log, and until nft has put the rules of all Services in place. Where rules of
 * an earlier agent are there, an agent without a controller waits 8 s for it (`holdMs` of agent/network/network-manager.ts).
 */
async function started(name: string, { startAgent, run }: ServicesMachine): Promise<Program> {
  const beganMs = performance.now()
  const agent = startAgent()
  const seconds = () => `${((performance.now() - beganMs) / 1000).toFixed(2)} s`
  while (agent.lines.length === 0) await delay(5)
  const begins = seconds()
  await agent.logged('Rules of the network applied', 120_000)
  const applied = seconds()
  const found = new Set((await run('nft', 'list', 'table', 'ip', 'bramble')).match(/\b10\.251\.\d+\.\d+/g))
  starts.push(`| ${[name, begins, applied, found.size].join(' | ')} |`)
  console.error(starts.at(-1))
  return agent
}

async function measure(name: string, { pid }: Program): Promise<void> {
  await delay(values.settle * 1000)
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const field = (of: string) => {
    const kilobytes = Number(new RegExp(`^${of}:\\s*(\\d+)`, 'm').exec(status)?.[1])
    return `${((kilobytes * 1024) / 1e6).toFixed(1)} MB`
  }
  rows.push(`| ${[name, ...['VmRSS', 'RssAnon', 'VmHWM'].map(field)].join(' | ')} |`)
  console.error(rows.at(-1))
}
