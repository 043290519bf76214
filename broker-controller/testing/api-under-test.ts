/** An API server on a real port with real certificates, over a store in memory, and the real kubectl against it. */
import { execFile, spawn } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Identity } from '../../api/identity.ts'
import { administrator } from '../../api/identity.ts'
import { newKey, type OpenedAuthority, openAuthority, privateKeyPem } from '../../certs/authority.ts'
import { commonNameOfCSR } from '../../certs/csr-check.ts'
import { type Issued, issue, issueServer } from '../../certs/issue.ts'
import { kubeconfigText } from '../../certs/kubeconfig.ts'
import { systemClock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { metricsRegistry } from '../../daemon/metrics-registry.ts'
import { runLoops } from '../../daemon/run.ts'
import { signingKey } from '../apiserver/authentication/tokens/json-web-token.ts'
import { serviceAccountTokens } from '../apiserver/authentication/tokens/service-account-tokens.ts'
import { openAuthorizer } from '../apiserver/authorization/authorizer.ts'
import { type ApiServerNeeds, apiServer } from '../apiserver/http/http-server.ts'
import { namespaceDeletion } from '../apiserver/namespace-deletion.ts'
import { podSecurityAdmission } from '../apiserver/pod-security/pod-security-admission.ts'
import { defaultPodSecuritySettings } from '../apiserver/pod-security/pod-security-settings.ts'
import { admissionGate } from '../apiserver/policies/admission-gate.ts'
import { serviceConnections } from '../apiserver/proxy/service-connections.ts'
import { resourceQuotaController } from '../apiserver/quota/quota-controller.ts'
import { usageLedger } from '../apiserver/quota/quota-ledger.ts'
import { webhookCaller } from '../apiserver/webhooks/webhook-call.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import { eventRecorder } from '../store/event-recorder.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { Store } from '../store/store.ts'
import { usageBoard } from '../usage/usage-board.ts'

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string }

export type ApiUnderTest = {
  readonly store: Store
  readonly url: string
  readonly port: number
  readonly authority: OpenedAuthority
  readonly folder: string
  /** Runs kubectl as the administrator, or with the options of another kubeconfig. */
  readonly kubectl: (args: readonly string[], more?: KubectlOptions) => Promise<Ran>
  /** A running kubectl, for `-w`: its lines as they come. */
  readonly watching: (args: readonly string[]) => Watching
  /** Resolves when exactly this many watches are open. */
  readonly watched: (times: number) => Promise<void>
  readonly issueFor: (identity: Identity, more?: { lifeMs?: number; nowMs?: number }) => Issued
  readonly kubeconfigFor: (name: string, content?: { certificate?: string; key?: string }) => Promise<string>
  readonly stop: () => Promise<void>
}

export type KubectlOptions = {
  readonly input?: string
  readonly kubeconfig?: string
  readonly env?: { readonly [name: string]: string }
}

export type Watching = {
  /** Resolves when the text was printed. */
  readonly seen: (text: string) => Promise<void>
  readonly ended: () => Promise<Ran>
  readonly stop: () => Promise<Ran>
}

export type ApiTestSettings = { readonly log: Log; readonly over?: Partial<ApiServerNeeds> }

const dayMs = 24 * 3600_000
/** Deadline of what is expected to arrive: only what never does takes this long. */
const deadlineMs = 90_000

export async function startApi({ log, over = {} }: ApiTestSettings): Promise<ApiUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-api-'))
  const nowMs = Date.now()
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const server = issueServer(authority, { names: ['localhost', '127.0.0.1'], nowMs })
  const clock = over.clock ?? systemClock
  const store = over.store ?? memoryStore({ clock })
  for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease']) {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name }, status: { phase: 'Active' } } as const
    await store.create('namespaces', namespace)
  }
  const access = await openAuthorizer({ store, clock: systemClock, log })
  const tokenKeys = { signing: signingKey(newKey()), others: [] }
  const registry = over.registry ?? metricsRegistry()
  const quotas = usageLedger({ store, kinds: builtInKinds, clock })
  const caller = webhookCaller(serviceConnections({ store, clock, random: Math.random }))
  const api = apiServer({
    store,
    kinds: builtInKinds,
    access,
    tokens: serviceAccountTokens(() => tokenKeys, store),
    events: eventRecorder({ store, clock }),
    quotas,
    podSecurity: podSecurityAdmission({ store, clock, registry }, defaultPodSecuritySettings),
    webhooks: admissionGate({ store, kinds: builtInKinds, access, caller, clock, registry }),
    usage: usageBoard({ clock }),
    clock,
    log,
    registry,
    tls: { certificate: server.certificate, key: server.key, ca: authority.certificate },
    host: '127.0.0.1',
    port: 0,
    version: '0.1.0',
    commonNameOf: commonNameOfCSR,
    ...over,
  })
  const { port } = await api.listen().catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true })
    throw error
  })
  const stopping = new AbortController()
  const loops = [
    access,
    { name: 'api', run: api.run },
    namespaceDeletion({ store, kinds: builtInKinds, clock, log }),
    resourceQuotaController({ store, quotas, clock, log }),
  ]
  const running = runLoops(loops, stopping.signal, log)
  const url = `https://127.0.0.1:${port}`

  const issueFor: ApiUnderTest['issueFor'] = ({ user, groups }, { lifeMs = dayMs, nowMs: at = nowMs } = {}) => {
    const key = newKey()
    const subject = { commonName: user, organizations: groups }
    const publicKey = createPublicKey(key)
    const certificate = issue(authority, { subject, publicKey, usage: 'clientAuth', nowMs: at, lifeMs })
    return { certificate, key: privateKeyPem(key) }
  }
  const kubeconfigFor: ApiUnderTest['kubeconfigFor'] = async (name, content = {}) => {
    const path = join(folder, `${name}.kubeconfig`)
    await writeFile(path, kubeconfigText({ server: url, ca: authority.certificate, ...content }), { mode: 0o600 })
    return path
  }
  const admin = await kubeconfigFor('admin', issueFor(administrator))
  let runs = 0
  const argsFor = (args: readonly string[], kubeconfig: string) => [
    '--kubeconfig',
    kubeconfig,
    '--cache-dir',
    join(folder, `cache-${runs++}`),
    ...args,
  ]
  const environment = { PATH: process.env['PATH'] ?? '', HOME: folder }

  return {
    store,
    url,
    port,
    authority,
    folder,
    issueFor,
    kubeconfigFor,
    async watched(times) {
      const open = /^apiserver_longrunning_requests (\d+)/m
      const late = Date.now() + deadlineMs
      while (Number(open.exec(registry.text())?.[1] ?? 0) !== times) {
        if (Date.now() > late) throw new Error(`There were never ${times} watches open`)
        await systemClock.sleep(10)
      }
    },
    kubectl: (args, { input, kubeconfig = admin, env = {} } = {}) =>
      new Promise((resolve) => {
        const options = { env: { ...environment, ...env }, timeout: deadlineMs }
        const child = execFile('kubectl', argsFor(args, kubeconfig), options, (error, stdout, stderr) => {
          const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
          resolve({ code, stdout, stderr: code === -1 ? `${stderr}${error?.message}` : stderr })
        })
        child.stdin?.end(input ?? '')
      }),
    watching: (args) => {
      const child = spawn('kubectl', argsFor(args, admin), { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
      const out = { stdout: '', stderr: '' }
      let wake: () => void = () => undefined
      const ended = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? 0)))
      child.stdout.on('data', (chunk: Buffer) => {
        out.stdout += chunk.toString()
        wake()
      })
      child.stderr.on('data', (chunk: Buffer) => {
        out.stderr += chunk.toString()
      })
      return {
        async seen(text) {
          const late = Date.now() + deadlineMs
          while (!out.stdout.includes(text)) {
            if (child.exitCode !== null || Date.now() > late) {
              throw new Error(`kubectl ${args.join(' ')} never showed ${text}: ${out.stdout}${out.stderr}`)
            }
            await new Promise<void>((resolve) => {
              const timer = setTimeout(resolve, 1000)
              wake = () => {
                clearTimeout(timer)
                resolve()
              }
            })
          }
        },
        ended: async () => ({ code: await ended, ...out }),
        async stop() {
          child.kill('SIGTERM')
          return { code: await ended, ...out }
        },
      }
    },
    async stop() {
      stopping.abort()
      await running
      caller.close()
      await store.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
