/** `bramble-controller certificates`: lists certificates, revokes them, and replaces the authority. */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type ConfigMap, ConfigMapSchema } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import { administrator, nodeIdentity } from '../../api/identity.ts'
import { type Lease, nodeLeaseNamespace } from '../../api/lease.ts'
import { trustedAuthoritiesAnnotation } from '../../api/node/hardware-identity.ts'
import type { Node } from '../../api/node.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { beginRollover, changeOver, finishRollover, type Rollover, rolloverIn } from '../../certs/rollover.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { rfc3339, systemClock } from '../../daemon/clock.ts'
import { formatDuration } from '../../daemon/duration.ts'
import { giveToOwner } from '../data-directory/backup.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'
import { isIssuedCertificates, issuedCertificatesIn } from '../store/certificates/issued-certificates.ts'
import { revocationsIn, revocationsKey, withRevoked } from '../store/revocations.ts'
import { certificatesRow } from './command-table.ts'
import { adminSocketPath, requestReload } from './connection/admin-socket.ts'
import { expectSuccess } from './connection/expect-success.ts'
import { type ApiAccess, type KubeconfigPlace, kubeconfigPlace, readKubeconfig } from './connection/kubeconfig.ts'
import { copyNote, refuseOnStandby } from './refuse-on-standby.ts'
import { type CommandOutput, runCommand } from './run-command.ts'
import { textTable } from './text-table.ts'

type CertificatesCommandNeeds = CommandOutput & { readonly nowMs: number }
type Place = { readonly dataDir: string; readonly kubeconfig: KubeconfigPlace }

/** `argv`: what follows `certificates`. The exit code. Never rejects for what was typed or what the API answers. */
export async function certificatesCommand(argv: readonly string[], needs: CertificatesCommandNeeds): Promise<number> {
  return runCommand(certificatesRow, argv, needs, ({ form, args: [subject = ''], values }) => {
    const dataDir = resolve(values['data-dir'])
    const place = { dataDir, kubeconfig: kubeconfigPlace(values.kubeconfig, dataDir) }
    switch (form) {
      case 'list':
        return () => list(place, needs)
      case 'revoke NODE|USER':
        return () => revoke({ subject, ...values }, place, needs)
      case 'rollover begin':
        return () => whereItLeads(form, place, needs, () => begin(place, needs))
      case 'rollover change-over':
        return () => whereItLeads(form, place, needs, () => changeAuthority(place, values.force, needs))
      case 'rollover finish':
        return () => whereItLeads(form, place, needs, () => finish(place, values.force, needs))
    }
  })
}

async function list(place: Place, { nowMs, signal }: CertificatesCommandNeeds): Promise<string> {
  const { client } = await access(place)
  const files = await certificatesOf(place.dataDir)
  const nodes = await withIssued(await nodesOf(client, signal), client, signal)
  const revoked = await revocations(client, signal)
  const rows = [
    ...files.map(({ what, certificate }) => [
      what,
      ...datesOf(certificate.validTo, nowMs),
      caHash(certificate).slice(0, 23),
    ]),
    ...nodes.map(({ name, until, authority }) => [
      `node ${name}`,
      ...(until === undefined ? ['not seen since the controller started', ''] : datesOf(until, nowMs)),
      authority?.slice(0, 23) ?? '',
    ]),
  ]
  const out = [...revocationsIn(revoked).values()].map(
    ({ user, beforeMs, reason }) => `revoked: ${user}, certificates issued before ${iso(beforeMs)} (${reason})\n`,
  )
  return `${textTable([['CERTIFICATE', 'UNTIL', 'LEFT', 'KEY, OF NODES: SIGNED BY'], ...rows])}${out.join('')}`
}

type FileCertificate = { readonly what: string; readonly certificate: X509Certificate }

const fileNames: { readonly [path: string]: string } = {
  [`${authorityFolderName}/ca.crt`]: 'authority',
  [`${authorityFolderName}/next.crt`]: 'next authority',
  [`${authorityFolderName}/previous.crt`]: 'previous authority',
  'server.crt': 'server',
}

async function certificatesOf(dataDir: string): Promise<readonly FileCertificate[]> {
  const found = await Promise.all(
    Object.entries(fileNames).map(async ([path, what]) => {
      const pem = await readFile(join(dataDir, path), 'utf8').catch(() => undefined)
      return pem === undefined ? [] : [{ what, certificate: new X509Certificate(pem) }]
    }),
  )
  const { certificate } = await readKubeconfig(join(dataDir, 'kubeconfig')).catch(() => ({ certificate: undefined }))
  const admin =
    certificate === undefined ? [] : [{ what: 'administrator', certificate: new X509Certificate(certificate) }]
  return [...found.flat(), ...admin]
}

type NodeCertificate = {
  readonly name: string
  readonly until: string | undefined
  readonly authority: string | undefined
  /** Hashes of the authorities that it reports to trust. */
  readonly trusts: readonly string[]
}

async function nodesOf(client: ApiClient, signal: AbortSignal): Promise<readonly NodeCertificate[]> {
  const [nodes, leases] = await Promise.all([
    itemsOf<Node>(client, '/api/v1/nodes', signal),
    itemsOf<Lease>(client, `/apis/coordination.k8s.io/v1/namespaces/${nodeLeaseNamespace}/leases`, signal),
  ])
  const reported = new Map(leases.map(({ metadata }) => [metadata.name, metadata.annotations ?? {}]))
  return nodes.map(({ metadata: { name = '', annotations = {} } }) => ({
    name,
    until: reported.get(name)?.['bramble.dev/certificate-until'],
    authority: reported.get(name)?.['bramble.dev/certificate-authority'],
    trusts: (annotations[trustedAuthoritiesAnnotation] ?? '').split(',').filter((hash) => hash !== ''),
  }))
}

/** A user that is revoked already is revoked again, with all certificates issued since. */
async function revoke(
  { subject, reason, user: isUser }: { readonly subject: string; readonly reason: string; readonly user?: boolean },
  place: Place,
  { nowMs, signal }: CertificatesCommandNeeds,
) {
  if (/\s/.test(reason)) throw new Error(`--reason must be one word, as Stolen, not ${JSON.stringify(reason)}`)
  const { client } = await access(place)
  const isOwnUser = subject === administrator.user
  const user = isOwnUser || isUser || subject.includes(':') ? subject : nodeIdentity(subject).user
  const present = await revocations(client, signal)
  const none: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...revocationsKey } }
  const wanted = withRevoked(present ?? none, user, reason, nowMs)
  const collection = `/api/v1/namespaces/${revocationsKey.namespace}/configmaps`
  const answering =
    present === undefined
      ? client.post(collection, wanted, signal)
      : client.patch(
          `${collection}/${revocationsKey.name}`,
          { metadata: { resourceVersion: present.metadata.resourceVersion }, data: wanted.data },
          'application/merge-patch+json',
          signal,
        )
  const refused = `Cannot revoke the certificates of ${user}`
  if (isOwnUser) {
    const answer = await answering.catch(() => undefined) // the connection of this command is closed, too
    if (answer !== undefined) expectSuccess(refused, answer)
    await untilRevoked(user, revocationsIn(wanted).get(user)?.beforeMs ?? nowMs, place, signal)
    return `All kubeconfigs of administrators issued until now are revoked: the new one is ${place.kubeconfig.path}.\n`
  }
  expectSuccess(refused, await answering)
  const closed = `All certificates that ${user} was issued until now are revoked; its connections are closed.`
  if (isUser) return `${closed} Issue another with 'bramble-controller kubeconfig --user ${user}'.\n`
  return `${closed} To admit it again, let it join again with a token, and approve its request ('kubectl certificate approve').\n`
}

/** The controller writes a new kubeconfig after the revocation. */
async function untilRevoked(user: string, beforeMs: number, place: Place, signal: AbortSignal): Promise<void> {
  for (let tries = 100; ; tries--) {
    try {
      const { client } = await access(place)
      if ((revocationsIn(await revocations(client, signal)).get(user)?.beforeMs ?? 0) >= beforeMs) return
    } catch (cause) {
      if (tries === 0) throw new Error(`Cannot use ${place.kubeconfig.path} after the revocation`, { cause })
    }
    if (tries === 0) throw new Error(`Cannot revoke the certificates of ${user}`)
    await systemClock.sleep(200, signal)
    signal.throwIfAborted()
  }
}

/** A step of a rollover. Another controller than the leader would change its own files, and nothing of the fleet. */
async function whereItLeads(
  form: string,
  place: Place,
  { signal }: CertificatesCommandNeeds,
  step: () => Promise<string>,
): Promise<string> {
  const command = `bramble-controller certificates ${form}`
  await refuseOnStandby({ dataDir: place.dataDir, command, client: clientOf(place), signal })
  return step()
}

/** What is to be done where other controllers run: one without the authority that signs does not lead. */
async function otherControllers(place: Place, signal: AbortSignal): Promise<string> {
  // The step is done: where no controller answers, the note about its reload is what matters.
  return copyNote(join(place.dataDir, authorityFolderName), clientOf(place), signal)
}

async function begin(place: Place, { nowMs, signal }: CertificatesCommandNeeds): Promise<string> {
  const { dataDir } = place
  const { next = '' } = await beginRollover(join(dataDir, authorityFolderName), nowMs)
  const note = await reload(dataDir, signal)
  return `The next authority is ${next}. Nodes that are connected trust it within a minute, others when they are back.
'bramble-controller certificates rollover change-over' checks that all do, and then signs with it. Kubeconfigs that were copied
before do not contain it: copy ${join(dataDir, 'kubeconfig')} again before that.
${await otherControllers(place, signal)}${note}`
}

/** Where an external MQTT server has the connections, no certificate is seen: then that which was issued last is listed. */
async function withIssued(
  nodes: readonly NodeCertificate[],
  client: ApiClient,
  signal: AbortSignal,
): Promise<readonly NodeCertificate[]> {
  if (nodes.every(({ until }) => until !== undefined)) return nodes
  const maps = await itemsOf<ConfigMap>(client, '/api/v1/namespaces/kube-system/configmaps', signal)
  const issued = maps.filter(isIssuedCertificates).flatMap(issuedCertificatesIn)
  const known = issued.filter(({ serial }) => serial !== undefined).sort((a, b) => a.notBeforeMs - b.notBeforeMs)
  const last = new Map(known.map((certificate) => [certificate.user, certificate]))
  return nodes.map((node) => {
    const found = last.get(nodeIdentity(node.name).user)
    if (node.until !== undefined || found === undefined) return node
    return { ...node, until: rfc3339(found.notAfterMs), authority: found.authority }
  })
}

async function changeAuthority(place: Place, force: boolean, { signal }: CertificatesCommandNeeds): Promise<string> {
  const folder = join(place.dataDir, authorityFolderName)
  const { next, hash: present, stage }: Rollover = await rolloverIn(folder)
  // After an interrupted change-over the controller has not loaded it yet.
  if (stage === 'changed-over') return `The authority is already ${present}.\n${await reload(place.dataDir, signal)}`
  const { client } = await access(place)
  const late = (await nodesOf(client, signal)).filter(({ trusts }) => next === undefined || !trusts.includes(next))
  if (next !== undefined) refuseLate(late, force, 'do not trust the next authority yet; they would have to join again')
  const { hash } = await changeOver(folder)
  const note = await reload(place.dataDir, signal)
  return `The authority is now ${hash}: new join commands contain it. Nodes get certificates of it within minutes.
The previous one is trusted until 'bramble-controller certificates rollover finish'.
${await otherControllers(place, signal)}${note}`
}

async function finish(place: Place, force: boolean, { signal }: CertificatesCommandNeeds): Promise<string> {
  const folder = join(place.dataDir, authorityFolderName)
  const { hash, stage } = await rolloverIn(folder)
  if (stage === 'none') return `Only ${hash} is trusted.\n${await reload(place.dataDir, signal)}`
  const { client } = await access(place)
  const late = (await nodesOf(client, signal)).filter(({ authority }) => authority !== hash)
  if (stage === 'changed-over')
    refuseLate(late, force, 'have no certificate of the present authority yet; they would have to join again')
  await finishRollover(folder)
  const note = await reload(place.dataDir, signal)
  return `Only ${hash} is trusted now. Earlier kubeconfigs are no longer valid: the new one is ${place.kubeconfig.path}.\n${await otherControllers(place, signal)}${note}`
}

function refuseLate(late: readonly NodeCertificate[], force: boolean, what: string): void {
  if (late.length === 0 || force) return
  const names = late.map(({ name }) => name)
  const shown = names.length > 10 ? `${names.slice(0, 10).join(', ')} and ${names.length - 10} more` : names.join(', ')
  throw new Error(`Nodes ${shown} ${what}. Wait for them, delete those that are gone for good, or give --force`)
}

/** Makes a running controller load the authority. Returns a note for the output if none did. */
async function reload(dataDir: string, signal: AbortSignal): Promise<string> {
  await giveToOwner(dataDir)
  const isLoaded = await requestReload(adminSocketPath(dataDir), signal)
  return isLoaded
    ? ''
    : 'No running controller loaded this change: it takes effect at the next start (systemctl restart bramble-controller).\n'
}

async function access({ kubeconfig }: Place): Promise<{ readonly client: ApiClient; readonly found: ApiAccess }> {
  const found = await readKubeconfig(kubeconfig.path, kubeconfig.context)
  return { client: apiClient(found), found }
}

function clientOf(place: Place): () => Promise<ApiClient> {
  return () => access(place).then(({ client }) => client)
}

async function revocations(client: ApiClient, signal: AbortSignal): Promise<ConfigMap | undefined> {
  const path = `/api/v1/namespaces/${revocationsKey.namespace}/configmaps/${revocationsKey.name}`
  const answer = await client.get(path, signal)
  if (answer.status === 404) return undefined
  expectSuccess('Cannot read the list of revoked certificates', answer)
  const decoded = decode(ConfigMapSchema, answer.body)
  if (!decoded.ok) throw new Error('Cannot read the list of revoked certificates: the answer is not a ConfigMap')
  return decoded.value
}

async function itemsOf<T>(client: ApiClient, path: string, signal: AbortSignal): Promise<readonly T[]> {
  const answer = await client.get(path, signal)
  expectSuccess(`Cannot read ${path}`, answer)
  const { items } = answer.body as { readonly items?: readonly T[] }
  return items ?? []
}

function datesOf(until: string, nowMs: number): readonly [string, string] {
  const untilMs = Date.parse(until)
  return [iso(untilMs), untilMs > nowMs ? formatDuration(untilMs - nowMs) : 'ENDED']
}

function iso(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
