"""A server of pages on a free loopback port, for tests of those who scrape."""

import http.server
import threading

TEXT = "text/plain; version=0.0.4"


class PageServer:
    """Answers each GET, whatever its path, with what `page()` returns: a text, or
    bytes and their content type."""

    def __init__(self, page, status=200):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                answer = page()
                if isinstance(answer, str):
                    answer = answer.encode("utf-8"), TEXT
                body, kind = answer
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.target = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.target}/metrics"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
