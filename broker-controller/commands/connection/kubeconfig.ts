/** A kubeconfig file → how to reach the API, and as whom. */
import { readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { decode } from '../../../api/decode.ts'
import { problemText } from '../../../api/problem.ts'
import { type Described, list, object, optional, text } from '../../../api/schema.ts'
import { localContext } from '../../../certs/kubeconfig.ts'
import { readYaml } from '../../../daemon/yaml/yaml-reader.ts'

const entry = object({ name: text })
const KubeconfigSchema = object({
  'current-context': text,
  clusters: list(
    object({
      ...entry.properties,
      cluster: object({
        server: text,
        'certificate-authority-data': optional(text),
        'certificate-authority': optional(text),
      }),
    }),
  ),
  contexts: list(object({ ...entry.properties, context: object({ cluster: text, user: optional(text) }) })),
  users: optional(
    list(
      object({
        ...entry.properties,
        user: object({
          'client-certificate-data': optional(text),
          'client-certificate': optional(text),
          'client-key-data': optional(text),
          'client-key': optional(text),
          token: optional(text),
        }),
      }),
    ),
  ),
})
type Kubeconfig = Described<typeof KubeconfigSchema>

/** All but the address and the token are PEM. */
export type ApiAccess = {
  readonly url: string
  readonly ca: string
  readonly certificate?: string
  readonly key?: string
  readonly token?: string
}

export type KubeconfigPlace = {
  readonly path: string
  /** Used in place of the current context, where the file has it. */
  readonly context?: string
}

/** Where a command finds its kubeconfig: at the given path, else in the data directory of this machine's controller. */
export function kubeconfigPlace(given: string | undefined, dataDir: string): KubeconfigPlace {
  return given === undefined ? { path: join(dataDir, 'kubeconfig'), context: localContext } : { path: given }
}

/**
 * How to reach the API by this file: by the context of that name where the file has it, else by the current one. Throws
 * with the path when it cannot be read or lacks something.
 */
export async function readKubeconfig(path: string, context?: string): Promise<ApiAccess> {
  try {
    const config = parseKubeconfig(await readFile(path))
    const isThere = config.contexts.some(({ name }) => name === context)
    const chosen = context !== undefined && isThere ? { ...config, 'current-context': context } : config
    return await accessFrom(chosen, dirname(path))
  } catch (cause) {
    throw new Error(`Cannot use kubeconfig ${path}`, { cause })
  }
}

/** Throws with what is wrong. */
export function parseKubeconfig(source: string | Buffer): Kubeconfig {
  const decoded = decode(KubeconfigSchema, readYaml(source))
  if (decoded.ok) return decoded.value
  throw new Error(decoded.problems.map(problemText).join(', '))
}

/** The address of the cluster that the current context names. */
export function currentCluster(config: Kubeconfig) {
  const context = currentContext(config)
  const found = config.clusters.find(({ name }) => name === context.cluster)
  if (found === undefined) throw new Error(`it has no cluster ${context.cluster}`)
  return found.cluster
}

function currentContext(config: Kubeconfig) {
  const name = config['current-context']
  const found = config.contexts.find((one) => one.name === name)
  if (found === undefined) throw new Error(`its current-context ${JSON.stringify(name)} does not exist`)
  return found.context
}

async function accessFrom(config: Kubeconfig, folder: string): Promise<ApiAccess> {
  const cluster = currentCluster(config)
  const { user: userName } = currentContext(config)
  const user = config.users?.find(({ name }) => name === userName)?.user ?? {}
  const pem = async (inline: string | undefined, file: string | undefined) => {
    if (inline !== undefined) return Buffer.from(inline, 'base64').toString()
    return file === undefined ? undefined : readFile(resolve(folder, file), 'utf8')
  }
  const ca = await pem(cluster['certificate-authority-data'], cluster['certificate-authority'])
  if (ca === undefined) throw new Error('its cluster has no certificate-authority')
  const certificate = await pem(user['client-certificate-data'], user['client-certificate'])
  const key = await pem(user['client-key-data'], user['client-key'])
  return {
    url: cluster.server,
    ca,
    ...(certificate === undefined ? {} : { certificate }),
    ...(key === undefined ? {} : { key }),
    ...(user.token === undefined ? {} : { token: user.token }),
  }
}
