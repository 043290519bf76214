/** Measures what clients and nodes notice when controllers or members of etcd fail. `--help` prints the usage. */
import { t as program, test } from 'tap'
import { failOver } from '../../test/replicas/fail-over.ts'
import { freezeLeader } from '../../test/replicas/freeze.ts'
import { handOver } from '../../test/replicas/hand-over.ts'
import { killLeaders } from '../../test/replicas/kills.ts'
import { loseQuorum } from '../../test/replicas/quorum.ts'
import { usualOutage } from '../../test/support/outage.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'

const whole = [1, 100_000] as const
const row = {
  name: 'node dist/bench/replicas/failures.js',
  text: `Starts three members of etcd (without fsync) and several controllers on loopback addresses, makes one thing fail, and prints what was
noticed. Fails where an answered write was lost, a watcher missed or repeated a change, a pod was evicted or restarted, a planned hand-over
took more than 2 s, or the nodes were not Ready 25 s after the leader's death; a slow or busy machine gets more time, and the output has
both. Needs etcd, kubectl and bundles (node dist/scripts/build.js); with agents root and docker.io, too.

kills: three controllers, of which the one that leads is killed (SIGKILL) and started again, every second time with etcd's leader, while
writers and watchers go on at the controllers that are left.
freeze: two controllers, of which the one that leads is stopped (SIGSTOP), with writes under way and others that arrive in the meantime.
handover: two controllers, of which the one that leads is stopped (SIGTERM) ten times, and started again as a standby.
agents: two controllers, of which the one that leads is killed as if its machine had died, with agents and a pod on each.
quorum: two of three members of etcd are killed, with agents and a pod on each.`,
  options: {
    fail: {
      value: 'WHAT',
      help: 'what fails',
      choices: ['kills', 'freeze', 'handover', 'agents', 'quorum'],
      default: 'kills',
    },
    seconds: { value: 'S', help: 'how long; for handover and agents without effect', range: whole, default: '60' },
    writers: { value: 'N', help: 'writers', range: [2, 1_000], default: '64' },
    watchers: { value: 'N', help: 'watchers', range: [1, 1_000], default: '6' },
    pause: { value: 'MS', help: 'pause of a writer after an answer, on average', range: [0, 60_000], default: '1000' },
    every: { value: 'S', help: 'seconds between two kills', range: whole, default: '20' },
    agents: { value: 'N', help: 'agents', range: [1, 1_000], default: '3' },
    'at-once': { value: 'N', help: 'agents that are started at a time', range: [1, 100], default: '4' },
  },
} as const

const { fail, seconds, writers, watchers, pause, every, agents, ...others } = benchmarkOptions(row)

/** Far more than any of them takes. Also for the program: tap's own 30 s would end it, unless the environment has TAP_TIMEOUT. */
const timeout = 7_200_000
program.setTimeout(timeout)

test(fail, { timeout }, async (t) => {
  switch (fail) {
    case 'kills':
      return await killLeaders(t, { seconds, writers, watchers, pauseMs: pause, everySeconds: every })
    case 'freeze':
      return await freezeLeader(t, { seconds, writers })
    case 'handover':
      return await handOver(t, 10)
    case 'agents':
      return await failOver(t, { agents, atOnce: others['at-once'] })
    case 'quorum':
      return await loseQuorum(t, { ...usualOutage, seconds }, agents)
  }
})
