/** HAProxy with the configuration that docs/scale.md shows, in front of the controllers of a test. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type Teardown, temporaryFolder } from './fleet.ts'
import { skipWithout } from './missing-parts.ts'
import { eventually } from './wait.ts'

const program = '/usr/sbin/haproxy'

/** For `test(name, { skip: whyNoLoadBalancer() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoLoadBalancer(): string | false {
  return skipWithout('haproxy', existsSync(program))
}

type Server = { readonly host: string; readonly port: number }

export type LoadBalancerNeeds = {
  /** Where it listens. To the controllers all connections come from there. */
  readonly address: string
  readonly api: { readonly port: number; readonly servers: readonly Server[] }
  readonly mqtt: { readonly port: number; readonly servers: readonly Server[] }
  /** PEM, of the fleet. */
  readonly ca: string
  /** More of its configuration. */
  readonly more?: string
}

export type BackendState = {
  readonly name: string
  readonly status: string
  /** Status code of the last health check; 0: no answer. */
  readonly lastCode: number
}

export type LoadBalancer = {
  /** State of each server of this backend. */
  states(backend: string): Promise<readonly BackendState[]>
}

export async function startLoadBalancer(t: Teardown, needs: LoadBalancerNeeds): Promise<LoadBalancer> {
  const folder = await temporaryFolder(t)
  const [caFile, file, socket] = [join(folder, 'ca.crt'), join(folder, 'haproxy.cfg'), join(folder, 'stats')]
  await writeFile(caFile, needs.ca)
  await writeFile(file, configuration(await documented(), needs, { caFile, socket }))
  const child = spawn(program, ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'inherit'] })
  const exit = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
  })
  const states: LoadBalancer['states'] = async (backend) => {
    const asked = connect(socket)
    asked.end('show stat\n')
    const [head = '', ...rows] = (await text(asked)).replace(/^# /, '').trim().split('\n')
    const names = head.split(',')
    return rows
      .map((row) => row.split(','))
      .map((row) => (name: string) => row[names.indexOf(name)] ?? '')
      .filter((field) => field('pxname') === backend && !/^(FRONT|BACK)END$/.test(field('svname')))
      .map((field) => ({
        name: field('svname'),
        status: field('status'),
        lastCode: Number(field('check_code')),
      }))
  }
  await eventually(
    'a health check was answered',
    async () => (await states('bramble-api')).some(({ status }) => status === 'UP'),
    { giveUp: () => child.exitCode !== null },
  )
  return { states }
}

async function documented(): Promise<string> {
  const page = await readFile(fileURLToPath(new URL('../../../docs/scale.md', import.meta.url)), 'utf8')
  const [, block = ''] = page.slice(page.indexOf('### A load balancer')).split('```', 2)
  return block
}

/** The text of the page with the places of this test. */
function configuration(
  page: string,
  { address, api, mqtt, more = '' }: LoadBalancerNeeds,
  { caFile, socket }: { readonly caFile: string; readonly socket: string },
): string {
  const ofPort = (port: string) => (port === '6443' ? api : mqtt)
  const lines = page.split('\n').flatMap((line) => {
    const [, bound] = /^ {2}bind :(\d+)$/.exec(line) ?? []
    if (bound !== undefined) return `  bind ${address}:${ofPort(bound).port}`
    const [, name, port = '', rest = ''] = /^ {2}server (\w+) [\d.]+:(\d+)(.*)$/.exec(line) ?? []
    if (name === undefined) return line.replace(/^global$/, `global\n  stats socket ${socket}`)
    const server = ofPort(port).servers[name === 'one' ? 0 : 1]
    if (server === undefined) return []
    return `  server ${name} ${server.host}:${server.port}${rest.replace('/etc/haproxy/bramble-ca.crt', caFile)} source ${address}`
  })
  return `${lines.join('\n')}\n${more}\n`
}
