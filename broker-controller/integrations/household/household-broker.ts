/** The MQTT broker of a household, which is not the fleet's own: where it is, and how this controller logs in. */
import { isAbsolute } from 'node:path'
import { type Described, object, optional, text } from '../../../api/schema.ts'

/** Part of each configuration that names a broker. */
export const householdBrokerFields = {
  server: optional(text),
  username: optional(text),
  passwordFile: optional(text),
  caFile: optional(text),
  certFile: optional(text),
  keyFile: optional(text),
}
const HouseholdBrokerSchema = object(householdBrokerFields)
export type HouseholdBrokerFile = Described<typeof HouseholdBrokerSchema>

export type HouseholdBroker = {
  readonly isEncrypted: boolean
  readonly host: string
  readonly port: number
  readonly username: string | undefined
  /** Read for each connection, as those below. The first line is the password. */
  readonly passwordFile: string | undefined
  /** PEM: the only trusted authorities; undefined: those of Node.js. */
  readonly caFile: string | undefined
  /** PEM: the client certificate with its key. */
  readonly clientFiles: { readonly certificate: string; readonly key: string } | undefined
}

const longestName = 256

/** Adds what is wrong to `problems`, with `path` before it. Undefined: there is no server. */
export function householdBroker(
  file: HouseholdBrokerFile,
  path: string,
  problems: string[],
): HouseholdBroker | undefined {
  const { server, username, passwordFile, caFile, certFile, keyFile } = file
  const check = (fine: boolean, problem: string) => {
    if (!fine) problems.push(`${path}.${problem}`)
  }
  for (const [name, value] of Object.entries({ passwordFile, caFile, certFile, keyFile })) {
    check(value === undefined || isAbsolute(value), `${name}: ${JSON.stringify(value)} must be an absolute path`)
  }
  check(
    username === undefined || (username !== '' && username.length <= longestName),
    `username: must have 1 to ${longestName} characters`,
  )
  check(passwordFile === undefined || username !== undefined, 'passwordFile: name the username, too')
  check((certFile === undefined) === (keyFile === undefined), 'certFile: certFile and keyFile must be given together')
  if (server === undefined) {
    check(
      [username, passwordFile, caFile, certFile, keyFile].every((one) => one === undefined),
      'server: name the broker that the other fields are for',
    )
    return undefined
  }
  const place = serverIn(server)
  if (place === undefined) {
    check(false, `server: ${JSON.stringify(server)} must be mqtt://HOST:PORT or mqtts://HOST:PORT`)
    return undefined
  }
  check(place.isEncrypted || caFile === undefined, 'caFile: the server must begin with mqtts://')
  check(place.isEncrypted || certFile === undefined, 'certFile: the server must begin with mqtts://')
  return {
    ...place,
    username,
    passwordFile,
    caFile,
    clientFiles: certFile !== undefined && keyFile !== undefined ? { certificate: certFile, key: keyFile } : undefined,
  }
}

/** Without a port: 1883, or 8883 with TLS (the ports registered for MQTT). */
function serverIn(server: string): Pick<HouseholdBroker, 'isEncrypted' | 'host' | 'port'> | undefined {
  if (!URL.canParse(server)) return undefined
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(server)
  const isEncrypted = protocol === 'mqtts:'
  const isPlain = username + password + search + hash === '' && (pathname === '' || pathname === '/')
  if (!(isEncrypted || protocol === 'mqtt:') || hostname === '' || !isPlain) return undefined
  // Only in a URL an IPv6 address has brackets.
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return { isEncrypted, host, port: Number(port || (isEncrypted ? 8883 : 1883)) }
}
