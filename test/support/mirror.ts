/** A program in a pod that shows which address its clients have. */

/** Answers a request with the address that it came from. */
export const mirror = [
  'mkdir -p /tmp/cgi-bin',
  'printf "#!/bin/sh\\necho\\necho from \\$REMOTE_ADDR\\n" >/tmp/cgi-bin/from',
  'chmod +x /tmp/cgi-bin/from',
  'dd if=/dev/zero of=/tmp/large bs=1000 count=500 2>/dev/null',
  'exec httpd -f -p 80 -h /tmp',
].join('; ')

/** For `sh -c`: a request by HTTP. It waits 10 s for the answer: a busy machine takes some to start the program that gives it. */
export const requestTo = (path: string, address: string, port = 80) =>
  `printf "GET ${path} HTTP/1.0\\r\\n\\r\\n" | busybox nc -w 10 ${address} ${port}`
/** The address in the answer of a mirror. */
export const seenBy = (output: string) => /from \[?(?:::ffff:)?([\d.]+)\]?/.exec(output)?.[1]
