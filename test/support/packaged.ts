/** Test machines with our Debian packages on them, as a user installs them. */
import { appendFile, chmod, copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Ending, Machine } from './machine.ts'
import { command, commandOrThrow, longestMs, type Outcome } from './machine-commands.ts'

const repository = fileURLToPath(new URL('../../../', import.meta.url))

/** Paths on this host. The later ones are of version 99.0.0, and otherwise the same. */
export type TestPackages = {
  readonly agent: string
  readonly controller: string
  readonly laterAgent: string
  readonly laterController: string
}

/** Built at the first call, which takes about half a minute, and when a source has changed. */
export async function testPackages(): Promise<TestPackages> {
  const script = join(repository, 'test/machines/build-packages.sh')
  const folder = (await commandOrThrow(script, [], { withinMs: 10 * 60_000 })).trim()
  const { stdout: files } = await command('find', [folder, '-name', '*.deb'])
  const find = (name: string, later: boolean) => {
    const path = files.split('\n').find((file) => file.includes(name) && file.includes('_99.0.0_') === later)
    if (path === undefined) throw new Error(`No package ${name} was built`)
    return path
  }
  return {
    agent: find('bramble-agent_', false),
    controller: find('bramble-controller_', false),
    laterAgent: find('bramble-agent_', true),
    laterController: find('bramble-controller_', true),
  }
}

/** `apt-get install ./x.deb`, with its Node.js: what it printed. */
export async function install(machine: Machine, path: string): Promise<string> {
  await machine.copyIn(path, '/var/tmp/x.deb')
  await machine.copyIn(await runtimeBeside(path), '/var/tmp/runtime.deb')
  const files = '/var/tmp/runtime.deb /var/tmp/x.deb'
  const words = await machine.run(`DEBIAN_FRONTEND=noninteractive apt-get install --yes ${files} 2>&1`, {
    withinMs: 120_000,
  })
  await machine.run(`rm ${files}`)
  return words
}

/** The package with the Node.js that the package at `path` runs on: a machine of a test has no repository to get it from. */
async function runtimeBeside(path: string): Promise<string> {
  const name = (await readdir(dirname(path))).find((file) => file.startsWith('bramble-runtime_'))
  if (name === undefined) throw new Error(`No bramble-runtime is beside ${path}`)
  return join(dirname(path), name)
}

/** The same on a disk that has not booted, as images are made: for `prepare` of a machine. */
export async function installOnDisk(disk: string, path: string): Promise<void> {
  const files = ['/var/tmp/runtime.deb', '/var/tmp/x.deb']
  await copyFile(await runtimeBeside(path), join(disk, 'var/tmp/runtime.deb'))
  await copyFile(path, join(disk, 'var/tmp/x.deb'))
  const install = ['apt-get', 'install', '--yes', ...files]
  await commandOrThrow('chroot', [disk, 'env', 'DEBIAN_FRONTEND=noninteractive', ...install], { withinMs: 120_000 })
  for (const file of files) await rm(join(disk, file))
}

/** `installOnDisk` of the controller for tests of other things than the network of pods: pods stay within their node. */
export async function installController(disk: string, path: string): Promise<void> {
  await installOnDisk(disk, path)
  await appendFile(join(disk, 'etc/bramble/controller.yaml'), 'podNetwork: node\n')
}

/** `apt install` finds what `test/machines/build-root.sh` fetched, as from a mirror of Debian, and asks nothing. */
export async function localMirror(machine: Machine): Promise<void> {
  await machine.run('rm --force /etc/apt/sources.list.d/*')
  await machine.write('/etc/apt/sources.list', 'deb [trusted=yes] file:/var/local/debian ./\n')
  await machine.write('/etc/apt/apt.conf.d/asks-nothing', 'APT::Get::Assume-Yes "true";\n')
  await machine.run('apt-get update')
}

export type Hub = {
  /** kubectl with the administrator's kubeconfig: what it printed. Throws when it fails. */
  kubectl(...args: readonly string[]): Promise<string>
  kubectlWith(input: string, ...args: readonly string[]): Promise<string>
  tryKubectl(...args: readonly string[]): Promise<Outcome>
  /** The line that makes another machine a node. */
  joinLine(): Promise<string>
}

/** A machine on which the controller's package is installed, seen by an administrator on this host. */
export async function hubOn(t: Ending, machine: Machine): Promise<Hub> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-hub-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const kubeconfig = join(folder, 'kubeconfig')
  const text = await machine.run('cat /var/lib/bramble/controller/kubeconfig')
  await writeFile(kubeconfig, text.replace('https://127.0.0.1:', `https://${machine.address}:`))
  await chmod(kubeconfig, 0o600)
  const tryKubectl = (args: readonly string[], input?: string) =>
    command('kubectl', ['--kubeconfig', kubeconfig, '--cache-dir', join(folder, 'cache'), ...args], {
      withinMs: longestMs(args),
      ...(input === undefined ? {} : { input }),
    })
  const kubectl = async (args: readonly string[], input?: string) => {
    const { code, stdout, stderr } = await tryKubectl(args, input)
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} failed: ${stderr}`)
    return stdout
  }
  return {
    kubectl: (...args) => kubectl(args),
    kubectlWith: (input, ...args) => kubectl(args, input),
    tryKubectl: (...args) => tryKubectl(args),
    async joinLine() {
      const made = await machine.run('bramble-controller token create --print-join-command')
      const line = made.split('\n').find((one) => one.startsWith('bramble-agent join '))
      if (line === undefined) throw new Error(`No join line: ${made}`)
      return line
    },
  }
}

/** True when the node's Ready condition is. */
export async function isNodeReady({ tryKubectl }: Hub, name: string): Promise<boolean> {
  const path = '{.status.conditions[?(@.type=="Ready")].status}'
  return (await tryKubectl('get', 'node', name, '-o', `jsonpath=${path}`)).stdout === 'True'
}
