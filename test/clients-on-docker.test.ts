/** Clients that people have, unmodified, against a fleet on Docker. The scripts of the clients are in `test/clients/`. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { joinedFleet } from './support/joined-fleet.ts'
import { skipWithout } from './support/missing-parts.ts'
import { image } from './support/pods.ts'

const scripts = fileURLToPath(new URL('../../test/clients/', import.meta.url))
const inPath = (name: string) => existsSync(join('/usr/bin', name))
const pythonPackages = '/usr/lib/python3/dist-packages'
const shellTools = ['kubectx', 'kubens', 'kubecolor', 'kubetail']

test('clients of Kubernetes work unmodified', async (t) => {
  const fleet = await joinedFleet(t)
  await fleet.startReady()
  const { kubectl } = fleet.controller
  const kubeconfig = join(fleet.folder, 'kubeconfig') // kubens writes to it
  await copyFile(fleet.controller.kubeconfig, kubeconfig)
  const env = {
    PATH: process.env['PATH'],
    HOME: fleet.folder,
    KUBECONFIG: kubeconfig,
    K8S_AUTH_KUBECONFIG: kubeconfig,
    LC_ALL: 'C.UTF-8',
    TERM: 'dumb',
    ANSIBLE_LOCALHOST_WARNING: 'false',
    ANSIBLE_NOCOLOR: '1',
  }
  /** Standard output; rejects with all of the output when the client fails. */
  const run = async (file: string, ...args: readonly string[]) => {
    const { stdout } = await promisify(execFile)(file, args, { env, timeout: 240_000 }).catch(
      ({ message, stdout }: { readonly message: string; readonly stdout: string }) => {
        throw new Error(`${message}\n${stdout}`)
      },
    )
    return stdout
  }

  const python = { skip: skipWithout('python3-kubernetes', existsSync(join(pythonPackages, 'kubernetes'))) }
  await t.test('python: typed models, streams, dynamic client, leader election', python, async (t) => {
    const steps = await run('/usr/bin/python3', join(scripts, 'python_client.py'), kubeconfig, image)
    t.equal(steps.trim().split('\n').at(-1), 'delete')
  })

  const ansible = { skip: skipWithout('ansible', inPath('ansible-playbook')) }
  await t.test('ansible: k8s, k8s_log, k8s_exec, server-side apply, k8s_drain', ansible, async (t) => {
    const playbook = join(scripts, 'playbook.yaml')
    const played = await run('ansible-playbook', '-e', `image=${image}`, '-e', 'node=pi-1', playbook)
    t.match(played, /failed=0 /)
  })

  await t.test('javascript: streams, server-side apply, an informer over a restart of the controller', async (t) => {
    const client = spawn(process.execPath, [join(scripts, 'node-client.mjs'), image], { env })
    t.teardown(() => client.kill('SIGKILL'))
    let errors = ''
    client.stderr.on('data', (text) => {
      errors += text
    })
    const ended = once(client, 'close')
    const steps: string[] = []
    for await (const step of createInterface({ input: client.stdout })) {
      steps.push(step)
      if (step !== 'restart the controller') continue
      await fleet.controller.program.stop()
      await fleet.controllerAgain()
      client.stdin.write('restarted\n')
    }
    t.same(await ended, [0, null], errors)
    t.equal(steps.at(-1), 'informer over a restart')
  })

  await t.test('kubernetes-fluent-client', async (t) => {
    const steps = await run(process.execPath, join(scripts, 'fluent-client.mjs'), image)
    t.equal(steps.trim().split('\n').at(-1), 'watch')
  })

  await t.test(
    'kubens, kubectx, kubecolor and kubetail',
    {
      skip: skipWithout('kubectl-tools', shellTools.every(inPath)),
    },
    async (t) => {
      await kubectl('run', 'one', `--image=${image}`, '--command', '--', 'sh', '-c', 'echo from one; exec sleep 1000')
      await kubectl('wait', '--for=condition=Ready', 'pod/one', '--timeout=80s')
      t.match(await run('kubens'), /^kube-system$/m)
      await run('kubens', 'kube-system')
      t.equal(
        (await run('kubectl', 'config', 'view', '--minify', '-o', 'jsonpath={..namespace}')).trim(),
        'kube-system',
      )
      await run('kubens', 'default')
      t.match(await run('kubectx'), /^bramble/m)
      t.match(await run('kubecolor', 'get', 'pods', '--plain'), /^one +1\/1 +Running/m)
      // It ends by a signal to its whole process group.
      const kubetail = 'setsid --wait kubetail one --follow false --since 1h --colored-output false || true'
      const tail = await run('sh', '-c', kubetail)
      t.match(tail, /\[one\] from one/)
    },
  )
})
