/** The files of a Mosquitto that serves one fleet, each whole. */
import { accessList } from './access-list.ts'
import { mosquittoFiles, opensslConfiguration, serverConfiguration } from './server-configuration.ts'

export type ServerFacts = {
  /** Where the files are read. */
  readonly folder: string
  readonly port: number
  /** PEM: the authorities whose certificates are accepted. */
  readonly authorities: string
  /** PEM, of the server. */
  readonly certificate: string
  readonly key: string
  /** PEM: a list of each authority. OpenSSL accepts no certificate of an authority without one. */
  readonly revocations: string
  /** The user name of the controllers. */
  readonly controller: string
  /** Names of the nodes that have rights. */
  readonly nodes: Iterable<string>
}

export type ServerFile = { readonly name: string; readonly content: string }

/** In the order in which they are to be written: what the configuration names comes before it. */
export function serverFiles(facts: ServerFacts): readonly ServerFile[] {
  const { folder, port, authorities, certificate, key, revocations, controller, nodes } = facts
  return [
    { name: mosquittoFiles.authorities, content: authorities },
    { name: mosquittoFiles.certificate, content: certificate },
    { name: mosquittoFiles.key, content: key },
    { name: mosquittoFiles.revocations, content: revocations },
    { name: mosquittoFiles.accessList, content: accessList(controller, nodes) },
    { name: mosquittoFiles.openssl, content: opensslConfiguration },
    { name: mosquittoFiles.configuration, content: serverConfiguration(folder, port) },
  ]
}
