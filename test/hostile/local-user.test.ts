/** A local user of a machine of the fleet who is not root, and a pod on the host network, which reaches the same ports. */
import { execFile } from 'node:child_process'
import { chmod } from 'node:fs/promises'
import { test } from 'tap'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import { attackedFleet, honest } from './support/attacked-fleet.ts'
import { openPlain, stillOpen } from './support/clients.ts'

const secret = 'a-value-for-the-pod-alone'

test('an attacker with an account on a machine', async (t) => {
  const fleet = await attackedFleet(t)
  // What protects the state must be its own modes, not the temporary folder that it is in.
  await chmod(fleet.folder, 0o755)
  const { controller } = fleet
  await controller.kubectl('create', 'secret', 'generic', 'hidden', `--from-literal=file=${secret}`)
  await controller.kubectlWith(
    podManifest({ name: 'web', image, spec: podSpec, container: podContainer }),
    'apply',
    '-f',
    '-',
  )
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  const endpoint = fleet.endpoint()

  await t.test('reads health and metrics, and no value of a pod', async (t) => {
    t.equal((await fetch(`${endpoint}/healthz`)).status, 200)
    for (const path of [
      '/metrics',
      '/metrics/cadvisor',
      '/metrics/resource',
      '/stats/summary',
      '/pods',
      '/spec',
      '/configz',
      '/logs',
      '/runningpods',
    ]) {
      const answer = await fetch(endpoint + path)
      t.notMatch(await answer.text(), secret, path)
      if (path === '/pods') t.not(answer.status, 200, path)
    }
  })

  await t.test('reads no file and no socket of the agent and of the controller', async (t) => {
    const folders = [fleet.folder, '/run/bramble']
    const found = await asStranger(
      `grep -rlsF -- '${secret}' ${folders.join(' ')}; find ${folders.join(' ')} -name '*.key' -readable 2>/dev/null; true`,
    )
    t.equal(found, '', 'no file with the value of a Secret, and no key')
    const written = await asStranger(`find ${folders.join(' ')} ! -type l -writable 2>/dev/null; true`)
    t.equal(written, '', 'and nothing may be written to, no socket either')
    t.equal(await asStranger(`cat ${controller.kubeconfig} 2>/dev/null; true`), '')
  })

  await t.test('cannot keep the health check from its answer', (t) =>
    fleet.unnoticed(t, async () => {
      const { hostname: host, port } = new URL(endpoint)
      const beginning = Buffer.from('GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ')
      const sockets = await Promise.all(
        Array.from({ length: 200 }, () => openPlain({ host, port: Number(port) }, beginning)),
      )
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          fetch(`${endpoint}/healthz`).then(
            ({ status }) => status,
            () => 0,
          ),
        ),
      )
      t.ok(
        answers.some((status) => status === 200),
        `among ${stillOpen(sockets)} slow connections: ${answers}`,
      )
      for (const socket of sockets) socket?.destroy()
    }),
  )

  await t.test('leads no browser to the endpoint', async (t) => {
    const { port } = new URL(endpoint)
    const status = await asStranger(
      `printf 'GET /metrics HTTP/1.1\\r\\nHost: evil.example\\r\\nConnection: close\\r\\n\\r\\n' | busybox nc 127.0.0.1 ${port} | head -1`,
    )
    t.match(status, / 403 /)
  })
})

const podSpec = { nodeName: honest, volumes: [{ name: 'v', secret: { secretName: 'hidden' } }] }
const podContainer = {
  env: [{ name: 'VALUE', value: secret }],
  volumeMounts: [{ name: 'v', mountPath: '/hidden' }],
}

/** A shell command as a user without any rights; rejects when it fails. */
function asStranger(script: string): Promise<string> {
  const user = ['--reuid=65534', '--regid=65534', '--clear-groups', '--no-new-privs']
  return new Promise((resolve, reject) => {
    execFile('setpriv', [...user, 'sh', '-c', script], { cwd: '/', timeout: 60_000 }, (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    )
  })
}
