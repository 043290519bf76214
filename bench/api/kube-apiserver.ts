/** Kubernetes' own kube-apiserver with one etcd, for a comparison in the same run: the benchmarks ask it for what they ask Bramble for. */
import { spawn } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../agent/testing/free-port.ts'
import type { ApiAccess } from '../../broker-controller/commands/connection/kubeconfig.ts'
import { openAuthority } from '../../certs/authority.ts'
import { issueAdmin, issueServer } from '../../certs/issue.ts'
import { etcdCluster } from '../../test/support/etcd.ts'
import { eventually } from '../../test/support/wait.ts'
import { apiLoad } from './api-load.ts'
import type { ApiServer } from './api-server.ts'

/** Starts `program` (a kube-apiserver) and the installed etcd, calls `act` and stops both. etcd writes without fsync. */
export async function withKubeApiserver<T>(
  program: string,
  act: (server: Omit<ApiServer, 'kubeconfig' | 'startAgain'> & { readonly access: ApiAccess }) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'kube-apiserver-'))
  const ends: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true, maxRetries: 5 })]
  try {
    const etcd = await etcdCluster()
    ends.push(() => etcd.remove())
    const { credentials, flags } = await issued(folder)
    const port = await freePort()
    const access: ApiAccess = { url: `https://127.0.0.1:${port}`, ...credentials }
    const child = spawn(
      program,
      [
        ...['--etcd-servers', etcd.urls.join(','), '--bind-address', '127.0.0.1', '--secure-port', `${port}`],
        ...['--service-cluster-ip-range', '10.96.0.0/16', '--authorization-mode', 'RBAC', '--v', '0', ...flags],
      ],
      { stdio: 'ignore' },
    )
    ends.push(async () => {
      if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit')
    })
    const load = apiLoad({ ...credentials, url: access.url })
    ends.push(async () => load.close())
    const isReady = async () => (await load.send({ method: 'GET', path: '/api/v1/namespaces/default' })) > 0
    await eventually('kube-apiserver answers', isReady, {
      withinMs: 120_000,
      giveUp: () => child.exitCode !== null,
    })
    return await act({ pid: child.pid ?? 0, load, folder, access })
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

async function issued(folder: string) {
  const authority = await openAuthority(join(folder, 'authority'), Date.now())
  const server = issueServer(authority, { names: ['127.0.0.1', 'localhost'], nowMs: Date.now() })
  const admin = issueAdmin(authority, { nowMs: Date.now() })
  const write = async (name: string, content: string) => {
    const path = join(folder, name)
    await writeFile(path, content, { mode: 0o600 })
    return path
  }
  const key = await write('server.key', server.key)
  // It reads no other form as the key of tokens.
  const sec1 = createPrivateKey(server.key).export({ type: 'sec1', format: 'pem' })
  const tokenKey = await write('tokens.key', sec1.toString())
  const flags = [
    ...['--client-ca-file', await write('ca.crt', authority.certificate)],
    ...['--tls-cert-file', await write('server.crt', server.certificate), '--tls-private-key-file', key],
    ...['--service-account-issuer', 'https://kubernetes.default.svc'],
    ...['--service-account-key-file', tokenKey, '--service-account-signing-key-file', tokenKey],
  ]
  return { flags, credentials: { ca: authority.certificate, certificate: admin.certificate, key: admin.key } }
}
