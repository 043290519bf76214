/** The rules, boards and configuration in docs/monitoring, by Debian's Prometheus with a real fleet. */
import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { parse } from 'yaml'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image } from './support/pods.ts'
import { metricsAccount, skipWithoutPrometheus, startPrometheus } from './support/prometheus.ts'
import { eventually } from './support/wait.ts'

const skip = skipWithoutPrometheus
const documents = fileURLToPath(new URL('../../docs/monitoring', import.meta.url))

type Rule = { readonly alert: string; readonly expr: string; readonly for?: string }
type RuleFile = { readonly groups: readonly { readonly rules: readonly Rule[] }[] }
type Board = {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
}

const ruleFile = (): RuleFile => parse(readFileSync(join(documents, 'bramble.rules.yml'), 'utf8'))
const rules = () => ruleFile().groups.flatMap((group) => group.rules)
const boards = () =>
  readdirSync(join(documents, 'grafana'))
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({ name, board: JSON.parse(readFileSync(join(documents, 'grafana', name), 'utf8')) as Board }))

test('promtool accepts the rules and the configuration, and the tests of the rules pass', { skip }, async (t) => {
  const promtool = (...args: readonly string[]) => spawnSync('promtool', args, { cwd: documents, encoding: 'utf8' })
  for (const args of [
    ['check', 'rules', 'bramble.rules.yml'],
    ['check', 'config', '--syntax-only', 'prometheus.yml'],
    ['test', 'rules', 'bramble.rules.test.yml'],
  ]) {
    const { status, stdout, stderr } = promtool(...args)
    t.equal(status, 0, `promtool ${args.join(' ')}\n${stdout}${stderr}`)
  }
})

test('every alert is tested, and described on the page', async (t) => {
  const tests = readFileSync(join(documents, 'bramble.rules.test.yml'), 'utf8')
  const page = readFileSync(join(documents, 'README.md'), 'utf8')
  for (const { alert } of rules()) {
    t.match(tests, new RegExp(`alertname: ${alert}\\n +exp_alerts`), `${alert} fires in a test`)
    t.ok(page.includes(`\`${alert}\``), `${alert} is on the page`)
  }
})

/**
 * Metrics of sensors and kernel features that a test machine need not have, and of problems that this fleet does not
 * have.
 */
const notEverywhere =
  /node_thermal|node_hwmon|bramble_flash|node_pressure|node_disk|cfs_throttled|container_fs_writes|^ALERTS/

test('a real fleet has data for every board, and alerts evaluate and fire', { skip }, async (t) => {
  const { controller, folder, startReady } = await joinedFleet(t)
  await startReady()
  await metricsAccount(controller, folder)
  const limits = { resources: { limits: { cpu: '200m', memory: '32Mi' } } }
  const readinessProbe = { exec: { command: ['false'] }, periodSeconds: 1, failureThreshold: 1 }
  const crashing = { name: 'crashing', image, command: ['false'] }
  const unready = { name: 'unready', image, container: { ...limits, readinessProbe } }
  for (const pod of [crashing, unready]) await controller.kubectlWith(podManifest(pod), 'apply', '-f', '-')
  cpSync(join(documents, 'bramble.rules.yml'), join(folder, 'bramble.rules.yml'))
  const { host } = new URL(controller.apiUrl)
  const configuration = readFileSync(join(documents, 'prometheus.yml'), 'utf8')
    .replaceAll('controller:6443', host)
    .replaceAll('30s', '2s')
  await writeFile(join(folder, 'prometheus.yml'), configuration)
  const prometheus = await startPrometheus(t, folder)

  await t.test('all targets that the controller lists are up', async (t) => {
    const up = await eventually('six targets are up', async () => {
      const found = await prometheus.query('up == 1')
      return found.length === 6 && found
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${prometheus.errors()}`, { cause: error })
    })
    t.same(up.map(({ metric: { job, metrics_path } }) => `${job} ${metrics_path}`).sort(), [
      'apiserver /metrics',
      'kube-state-metrics /metrics/fleet',
      'kubelet /metrics',
      'kubelet /metrics/cadvisor',
      'kubelet /metrics/probes',
      'node-exporter /metrics',
    ])
    const several = await prometheus.query('count by (__name__) (kubelet_running_pods)')
    t.match(several, [{ value: [Number, '1'] }], 'no series is read twice')
  })

  await t.test('an alert is on its way for the pod that crashes', async (t) => {
    const pending = await eventually('the alert is pending', async () => {
      const found = await prometheus.query('ALERTS{alertname="PodCrashLooping"}')
      return found.length > 0 && found
    })
    t.match(pending, [{ metric: { pod: 'crashing', container: 'main', alertstate: 'pending' } }])
  })

  await t.test('Prometheus evaluates every rule, and none fires in a fleet that is well otherwise', async (t) => {
    type Evaluated = { readonly groups: readonly { readonly rules: readonly { name: string; health: string }[] }[] }
    const { groups } = await eventually('every group was evaluated once', async () => {
      const found = (await prometheus.read('rules')) as Evaluated
      return found.groups.every((group) => group.rules.every(({ health }) => health !== 'unknown')) && found
    })
    t.same(
      groups.flatMap((group) => group.rules.map(({ name, health }) => `${name} ${health}`)),
      rules().map(({ alert }) => `${alert} ok`),
    )
    // The kernel counts memory kills of the whole machine, so those of other programs, too.
    const others = 'ALERTS{alertname!~"Pod.*|NodeKillsForMemory",alertstate="firing"}'
    t.same(await prometheus.query(others), [])
  })

  // Two scrapes of what is read every 60 s are within it.
  const values = { $node: 'pi-1', $namespace: 'default', $pod: '.*', $__rate_interval: '5m' }
  const withValues = (expr: string) =>
    Object.entries(values).reduce((text, [name, value]) => text.replaceAll(name, value), expr)
  for (const { name, board } of boards()) {
    await t.test(`every panel of ${name} has data`, async (t) => {
      for (const { title, targets } of board.panels) {
        for (const { expr } of targets) {
          const query = withValues(expr)
          if (notEverywhere.test(query)) await t.resolves(prometheus.query(query), `${title} is valid`)
          else
            await t.resolves(
              eventually(`${title}: ${query}`, async () => (await prometheus.query(query)).length > 0),
              title,
            )
        }
      }
    })
  }
})
