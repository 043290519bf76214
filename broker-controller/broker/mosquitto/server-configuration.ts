/** The configuration of a Mosquitto that serves one fleet, in the form of mosquitto.conf(5) of version 2.0. */
import { join } from 'node:path'
import { longestSent } from '../server-limits.ts'

/** Names of the files in their folder. */
export const mosquittoFiles = {
  configuration: 'bramble.conf',
  accessList: 'access-list',
  authorities: 'ca.crt',
  certificate: 'server.crt',
  key: 'server.key',
  revocations: 'revoked.crl',
  openssl: 'openssl.cnf',
} as const

/**
 * For OPENSSL_CONF of Mosquitto, in the form of config(5ssl): the server gives no tickets of TLS 1.3. Mosquitto has no option of its own,
 * and looks at no revocation list when a session is resumed (docs/decisions/0008-no-tls-session-resumption.md).
 */
export const opensslConfiguration = `# Written by bramble-controller: changes are lost.
openssl_conf = bramble

[bramble]
ssl_conf = programs

[programs]
system_default = all

[all]
NumTickets = 0
`

/** `folder`: where Mosquitto reads the files. */
export function serverConfiguration(folder: string, port: number): string {
  const path = (name: keyof typeof mosquittoFiles) => join(folder, mosquittoFiles[name])
  return `# Written by bramble-controller: changes are lost.
listener ${port}
cafile ${path('authorities')}
certfile ${path('certificate')}
keyfile ${path('key')}
crlfile ${path('revocations')}
# Sessions of TLS 1.2 can be resumed without the key of the certificate; tickets of 1.3 are switched off in ${mosquittoFiles.openssl}.
tls_version tlsv1.3

# The certificate is the identity. A client cannot choose its client ID: that of a node replaces no connection of another one.
require_certificate true
use_identity_as_username true
use_username_as_clientid true
allow_anonymous false
acl_file ${path('accessList')}

# The controller and every node publish everything again after a restart: what was saved would be older.
persistence false
persistent_client_expiration 1h

# Nodes and controller use QoS 0 and 1. The largest message is that of a node with all its pods, ConfigMaps and Secrets.
max_qos 1
max_packet_size ${longestSent}
# As many as a controller can lead (docs/scale.md); the process needs as many files.
max_connections 100000
# Messages of a whole fleet that connects wait for the controller, up to these bytes. Of those that are dropped the controller asks again.
max_inflight_messages 1000
max_queued_messages 1000000
max_queued_bytes 268435456
set_tcp_nodelay true
`
}
